/*
 * A library that is loaded into the services of the end-to-end tests (LD_PRELOAD) and writes down
 * when each HTTP/1 exchange crossed the edge of the system calls: just before and just after the
 * calls that carried its first and its last bytes. So what a runtime does between its own clock
 * and the call (collector, interpreter lock, scheduler) does not stand between the judge's
 * measurement and the span. The calls themselves stay what they were.
 *
 * For each edge it also says how much of the call's time its thread can prove to have lost: all of
 * it, if it never slept; else what it computed, and, if it was preempted in the call, what it
 * waited for a CPU. A thread that only slept and was woken has lost nothing after the bytes were
 * there: its wait for a CPU came before it took them.
 *
 * Records go to the shared mapping of the file named by WITNESS (made by the harness, see
 * witness.py), so they survive any end of the process. Without that file the library only passes
 * calls on.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

enum { FDS_MAX = 65536, HEAD_BYTES_MAX = 144, MESSAGES_MAX = 8 };

enum role { ROLE_NONE, ROLE_SERVER, ROLE_CLIENT };

/* Times of CLOCK_MONOTONIC. */
struct edge {
	uint64_t before_ns, after_ns, lost_ns;
};

/* witness.py and witness.go read and write the same. */
struct record {
	struct edge first,
		last;    /* of the request's first call and of the response's last one so far */
	uint64_t eof_ns; /* of a client: when it read the end of the connection */
	uint32_t role, pid;
	char head[HEAD_BYTES_MAX]; /* the beginning of the request */
};

_Static_assert(sizeof(struct record) == 208, "witness.py and witness.go have the same layout");

struct log {
	_Atomic uint64_t used; /* may exceed what there is room for: then some were lost */
	uint64_t padding[25];
	struct record records[];
};

struct conn {
	uint64_t cookie; /* of the socket this descriptor was when it was last used */
	enum role role;
	bool has_response;
	size_t head_length;
	struct record *record;
};

/* What the thread has used and waited for so far. */
struct account {
	uint64_t ran_ns, waited_ns;
	long preempted, slept; /* times */
};

struct call {
	int fd;
	long number, arguments[6]; /* of the system call */
	const struct iovec *vector;
	size_t count;
	const struct mmsghdr *messages; /* NULL: the call returns bytes, not messages */
	bool is_send;
};

static struct log *witness_log;
static uint64_t records_max;
static struct conn conns[FDS_MAX];
static pthread_key_t account_key;
static __thread int account_fd = -1;

static void account_close(void *fd)
{
	close((int)(intptr_t)fd - 1);
}

static void account_forget(void)
{
	if (account_fd >= 0)
		close(account_fd);
	account_fd = -1;
	pthread_setspecific(account_key, NULL);
}

__attribute__((constructor)) static void witness_open(void)
{
	const char *name = getenv("WITNESS");
	int fd = name ? open(name, O_RDWR | O_CLOEXEC) : -1;
	struct stat st;
	void *map;

	if (fd < 0)
		return;
	if (fstat(fd, &st) == 0 && st.st_size > (off_t)sizeof(struct log)) {
		map = mmap(NULL, (size_t)st.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		if (map != MAP_FAILED && pthread_key_create(&account_key, account_close) == 0) {
			pthread_atfork(NULL, NULL,
				       account_forget); /* a child's thread is another */
			records_max =
				((uint64_t)st.st_size - sizeof(struct log)) / sizeof(struct record);
			witness_log = map;
		}
	}
	close(fd);
}

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static void account_read(struct account *ret_account)
{
	char text[64] = "";
	struct rusage usage;
	char *end;

	if (account_fd < 0) {
		account_fd = open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);
		pthread_setspecific(account_key, (void *)(intptr_t)(account_fd + 1));
	}
	pread(account_fd, text, sizeof(text) - 1, 0);
	getrusage(RUSAGE_THREAD, &usage);
	ret_account->ran_ns = strtoull(text, &end, 10);
	ret_account->waited_ns = strtoull(end, NULL, 10);
	ret_account->preempted = usage.ru_nivcsw;
	ret_account->slept = usage.ru_nvcsw;
}

static void edge_begin(struct edge *edge, struct account *account)
{
	account_read(account);
	edge->before_ns = now_ns();
}

static void edge_end(struct edge *edge, const struct account *before)
{
	struct account after;
	uint64_t width;

	edge->after_ns = now_ns();
	account_read(&after);
	width = edge->after_ns - edge->before_ns;
	edge->lost_ns = after.ran_ns - before->ran_ns;
	if (after.preempted != before->preempted)
		edge->lost_ns += after.waited_ns - before->waited_ns;
	/* What a hypervisor took from the CPU is in neither account. */
	if (after.slept == before->slept || edge->lost_ns > width)
		edge->lost_ns = width;
}

/* NULL: not to be watched. */
static struct conn *conn_of(int fd)
{
	socklen_t size = sizeof(uint64_t);
	uint64_t cookie;

	if (!witness_log || fd < 0 || fd >= FDS_MAX)
		return NULL;
	if (syscall(SYS_getsockopt, fd, SOL_SOCKET, SO_COOKIE, &cookie, &size) != 0)
		return NULL;
	if (conns[fd].cookie != cookie)
		conns[fd] = (struct conn){.cookie = cookie};
	return &conns[fd];
}

static struct record *record_new(enum role role)
{
	uint64_t n = atomic_fetch_add(&witness_log->used, 1);
	struct record *record;

	if (n >= records_max)
		return NULL;
	record = &witness_log->records[n];
	record->role = role;
	record->pid = (uint32_t)getpid();
	return record;
}

static void head_append(struct conn *conn, const struct call *call, size_t length)
{
	for (size_t i = 0; i < call->count && length > 0; i++) {
		const struct iovec *part = &call->vector[i];
		size_t n = part->iov_len < length ? part->iov_len : length;
		size_t room = HEAD_BYTES_MAX - 1 - conn->head_length;

		length -= n;
		n = n < room ? n : room;
		memcpy(conn->record->head + conn->head_length, part->iov_base, n);
		conn->head_length += n;
	}
}

/* 'length' bytes of a request pass. Returns its record if they are its first ones. */
static struct record *request_pass(struct conn *conn, enum role role, const struct call *call,
				   size_t length)
{
	bool is_new = !conn->record || conn->has_response;

	if (is_new) {
		conn->role = role;
		conn->has_response = false;
		conn->head_length = 0;
		conn->record = record_new(role);
	}
	if (conn->record)
		head_append(conn, call, length);
	return is_new ? conn->record : NULL;
}

static void on_received(struct conn *conn, const struct edge *edge, const struct call *call,
			size_t n)
{
	struct record *begun;

	if (n > 0 && conn->role != ROLE_CLIENT) {
		begun = request_pass(conn, ROLE_SERVER, call, n);
		if (begun)
			begun->first = *edge;
	} else if (n > 0 && conn->record) {
		conn->has_response = true;
		conn->record->last = *edge;
	} else if (n == 0 && conn->role == ROLE_CLIENT && conn->record) {
		conn->record->eof_ns = edge->after_ns;
	}
}

/*
 * What is sent is noted before the call: when it ends, another thread may have received what came
 * of it, the response to a request or the request that follows a response. Returns where the call's
 * edge belongs, or NULL.
 */
static struct edge *send_begin(struct conn *conn, const struct call *call)
{
	struct record *begun;

	if (conn->role != ROLE_SERVER) {
		begun = request_pass(conn, ROLE_CLIENT, call, SIZE_MAX);
		return begun ? &begun->first : NULL;
	}
	conn->has_response = true;
	return conn->record ? &conn->record->last : NULL;
}

/* Nothing was sent after all; the next call is the first one. */
static void send_undo(struct conn *conn, const struct edge *noted)
{
	if (noted && conn->role == ROLE_CLIENT)
		*conn = (struct conn){.cookie = conn->cookie, .role = ROLE_CLIENT};
}

static ssize_t call_make(const struct call *call)
{
	const long *a = call->arguments;

	return syscall(call->number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

static size_t bytes_of(const struct call *call, ssize_t n)
{
	size_t bytes = 0;

	if (!call->messages)
		return (size_t)n;
	for (ssize_t i = 0; i < n; i++)
		bytes += call->messages[i].msg_len;
	return bytes;
}

static ssize_t call_watch(const struct call *call)
{
	struct conn *conn = conn_of(call->fd);
	struct edge edge, *noted = NULL;
	struct account account;
	ssize_t n;

	if (!conn)
		return call_make(call);
	if (call->is_send)
		noted = send_begin(conn, call);
	edge_begin(&edge, &account);
	n = call_make(call);
	if (n < 0) {
		send_undo(conn, noted);
		return n;
	}
	edge_end(&edge, &account);
	if (!call->is_send)
		on_received(conn, &edge, call, bytes_of(call, n));
	else if (noted)
		*noted = edge;
	return n;
}

ssize_t read(int fd, void *data, size_t size)
{
	return call_watch(&(struct call){.fd = fd,
					 .number = SYS_read,
					 .arguments = {fd, (long)data, (long)size},
					 .vector = &(struct iovec){data, size},
					 .count = 1});
}

ssize_t write(int fd, const void *data, size_t size)
{
	return call_watch(&(struct call){.fd = fd,
					 .number = SYS_write,
					 .arguments = {fd, (long)data, (long)size},
					 .vector = &(struct iovec){(void *)data, size},
					 .count = 1,
					 .is_send = true});
}

ssize_t readv(int fd, const struct iovec *vector, int count)
{
	return call_watch(&(struct call){.fd = fd,
					 .number = SYS_readv,
					 .arguments = {fd, (long)vector, count},
					 .vector = vector,
					 .count = (size_t)count});
}

ssize_t writev(int fd, const struct iovec *vector, int count)
{
	return call_watch(&(struct call){.fd = fd,
					 .number = SYS_writev,
					 .arguments = {fd, (long)vector, count},
					 .vector = vector,
					 .count = (size_t)count,
					 .is_send = true});
}

ssize_t recvfrom(int fd, void *data, size_t size, int flags, struct sockaddr *from,
		 socklen_t *length)
{
	struct call call = {
		.fd = fd,
		.number = SYS_recvfrom,
		.arguments = {fd, (long)data, (long)size, flags, (long)from, (long)length},
		.vector = &(struct iovec){data, size},
		.count = 1};

	return flags & MSG_PEEK ? call_make(&call) : call_watch(&call);
}

ssize_t recv(int fd, void *data, size_t size, int flags)
{
	return recvfrom(fd, data, size, flags, NULL, NULL);
}

ssize_t sendto(int fd, const void *data, size_t size, int flags, const struct sockaddr *to,
	       socklen_t length)
{
	return call_watch(
		&(struct call){.fd = fd,
			       .number = SYS_sendto,
			       .arguments = {fd, (long)data, (long)size, flags, (long)to, length},
			       .vector = &(struct iovec){(void *)data, size},
			       .count = 1,
			       .is_send = true});
}

ssize_t send(int fd, const void *data, size_t size, int flags)
{
	return sendto(fd, data, size, flags, NULL, 0);
}

ssize_t recvmsg(int fd, struct msghdr *message, int flags)
{
	struct call call = {.fd = fd,
			    .number = SYS_recvmsg,
			    .arguments = {fd, (long)message, flags},
			    .vector = message->msg_iov,
			    .count = message->msg_iovlen};

	return flags & MSG_PEEK ? call_make(&call) : call_watch(&call);
}

ssize_t sendmsg(int fd, const struct msghdr *message, int flags)
{
	return call_watch(&(struct call){.fd = fd,
					 .number = SYS_sendmsg,
					 .arguments = {fd, (long)message, flags},
					 .vector = message->msg_iov,
					 .count = message->msg_iovlen,
					 .is_send = true});
}

/* Each message's first part; a request's beginning needs no more than MESSAGES_MAX of them. */
static size_t parts_of(const struct mmsghdr *messages, unsigned int count, struct iovec *parts)
{
	size_t n = 0;

	for (; n < count && n < MESSAGES_MAX; n++)
		parts[n] = messages[n].msg_hdr.msg_iov[0];
	return n;
}

int recvmmsg(int fd, struct mmsghdr *messages, unsigned int count, int flags,
	     struct timespec *timeout)
{
	struct iovec parts[MESSAGES_MAX];
	struct call call = {.fd = fd,
			    .number = SYS_recvmmsg,
			    .arguments = {fd, (long)messages, count, flags, (long)timeout},
			    .vector = parts,
			    .count = parts_of(messages, count, parts),
			    .messages = messages};

	return (int)(flags & MSG_PEEK ? call_make(&call) : call_watch(&call));
}

int sendmmsg(int fd, struct mmsghdr *messages, unsigned int count, int flags)
{
	struct iovec parts[MESSAGES_MAX];

	return (int)call_watch(&(struct call){.fd = fd,
					      .number = SYS_sendmmsg,
					      .arguments = {fd, (long)messages, count, flags},
					      .vector = parts,
					      .count = parts_of(messages, count, parts),
					      .is_send = true});
}

/* Only what follows a head comes from files and pipes. */
ssize_t sendfile(int fd, int from, off_t *offset, size_t size)
{
	return call_watch(&(struct call){.fd = fd,
					 .number = SYS_sendfile,
					 .arguments = {fd, from, (long)offset, (long)size},
					 .is_send = true});
}

ssize_t sendfile64(int fd, int from, off64_t *offset, size_t size)
{
	return sendfile(fd, from, (off_t *)offset, size);
}

ssize_t splice(int from, off64_t *from_offset, int fd, off64_t *offset, size_t size,
	       unsigned int flags)
{
	return call_watch(&(struct call){
		.fd = fd,
		.number = SYS_splice,
		.arguments = {from, (long)from_offset, fd, (long)offset, (long)size, flags},
		.is_send = true});
}
