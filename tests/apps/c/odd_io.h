/*
 * One connection of the odd program: bytes sent and received through a chosen one of the twelve
 * calls, and messages read from it whole. Every failure ends the program with a line: a test
 * service must never go on half-right.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* A sending call and its receiving counterpart. */
enum call {
	CALL_WRITE,
	CALL_WRITEV,
	CALL_SEND,
	CALL_SENDTO,
	CALL_SENDMSG,
	CALL_SENDMMSG,
	_CALL_MAX
};

enum body_way {
	BODY_PLAIN,
	BODY_SENDFILE,
	BODY_HEAD_IN_FILE,
	BODY_SPLICE,
	BODY_ZEROCOPY,
	BODY_MORE, /* the head in three sends and the body in two, all but the last with MSG_MORE */
};

struct sending {
	enum call call;
	enum body_way way;
	int cut;          /* a pause after this many bytes; 0: none; -1: a call for every byte */
	unsigned vectors; /* for the vector calls; 0: two */
	bool empty_vector_first;
};

struct receiving {
	enum call call;
	size_t chunk; /* at most this many bytes a call; 0: as many as there are */
	bool peek;    /* MSG_PEEK before each call */
	bool splice;  /* through a pipe instead of a call */
	bool alone;   /* room for one message in a call of recvmmsg, not for two */
};

struct connection {
	int fd;
	char *bytes; /* received, not consumed */
	size_t used;
	bool ended;
};

struct message {
	char method[16], path[256]; /* requests */
	int status;                 /* responses; 0: the connection was reset instead */
};

void connection_init(struct connection *connection, int fd);
void connection_close(struct connection *connection, bool reset);

/* Sends 'length' bytes, of which the first 'head' are the head. */
void connection_send(struct connection *connection, const struct sending *how, const char *bytes,
		     size_t head, size_t length);

/*
 * Reads one whole message and consumes it; interim responses before it are skipped. 'to' is the
 * method of the request that a response answers, NULL when a request is to be read.
 */
void connection_read(struct connection *connection, const struct receiving *how, const char *to,
		     struct message *ret);
