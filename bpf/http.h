/* SPDX-License-Identifier: (MIT OR GPL-2.0-only) */
/*
 * HTTP/1 as far as the kernel side must know it: where heads begin and end, how long bodies are,
 * whether a traceparent is there. Pure logic on a buffer, without helpers or maps; compiled for BPF
 * and for the host, so that unit tests and fuzzers run these very lines. Little-endian machines
 * only (x86-64, arm64).
 *
 * The caller (stream.bpf.h) brings the bytes of one direction of a connection in order, window by
 * window; an unfinished line is carried over, so heads may be cut anywhere. The framing is exact
 * (RFC 9112, section 6): lengths and chunk sizes are followed, and bytes of a body are never taken
 * for a head.
 */
#pragma once

#include "abi.h"
#include "subprogram.h"

#define HTTP_INLINE static inline __attribute__((always_inline, unused))

/*
 * The buffer that is scanned. Positions are masked before each access, which proves to the verifier
 * that they lie in it; behind the mask there is room for a word, and for a window that is copied to
 * any masked position.
 */
#define SCAN_MASK 4095
struct scan {
	__u8 bytes[4608];
};
#define BYTE(scan, i) ((scan)->bytes[(i)&SCAN_MASK])
#ifdef __BPF__
#define WORD(scan, i) (*(const __u64 *)((scan)->bytes + ((i)&SCAN_MASK)))
#define HALF(scan, i) (*(const __u32 *)((scan)->bytes + ((i)&SCAN_MASK)))
#else
/* The same without a misaligned access, which only the sanitizers of the tests mind. */
#define WORD(scan, i) http_load64((scan)->bytes + ((i)&SCAN_MASK))
#define HALF(scan, i) ((__u32)WORD(scan, i))
static inline __u64 http_load64(const __u8 *p)
{
	__u64 v;

	__builtin_memcpy(&v, p, sizeof(v));
	return v;
}
#endif
#define LOWER   0x2020202020202020ULL
#define LOWER32 0x20202020U

enum phase {
	PHASE_START,       /* at a message boundary, or in the first line of a message */
	PHASE_HEAD,        /* behind the first line */
	PHASE_BODY,        /* body_left bytes to go, of the body or of a chunk */
	PHASE_CHUNK_SIZE,  /* in a line with a chunk's size */
	PHASE_TRAILER,     /* behind the last chunk */
	PHASE_TO_CLOSE,    /* a body that ends with the connection */
	PHASE_OUT_OF_STEP, /* we do not know where in a message we are */
};

enum method { METHOD_OTHER, METHOD_HEAD, METHOD_CONNECT };

enum traceparent_state { TRACEPARENT_NONE, TRACEPARENT_VALID, TRACEPARENT_INVALID };

/* What a line told the caller. */
enum line_result {
	LINE_MORE,     /* go on with the next line */
	LINE_HEAD_END, /* the blank line behind a head */
	LINE_BODY,     /* a chunk follows: body_left is set */
	LINE_DONE,     /* the blank line behind the last chunk: the message is complete */
	LINE_BAD,      /* no HTTP/1 */
};

/* What a head has said so far. */
struct head_facts {
	__u64 content_length;
	__u16 status; /* of a response */
	__u8 is_request;
	__u8 method;      /* enum method */
	__u8 has_length;  /* Content-Length was there */
	__u8 is_chunked;  /* the last transfer coding is chunked */
	__u8 has_coding;  /* Transfer-Encoding was there */
	__u8 is_bad;      /* it may end elsewhere for who reads it: lengths that contradict each
			     other or are none, line ends that are none for some */
	__u8 traceparent; /* enum traceparent_state */
	__u8 trace_flags;
	__u8 trace_id[16];
	__u8 parent_id[8];
	__u8 fields;         /* header lines, up to 255 */
	__u8 is_1_0;         /* HTTP/1.0 */
	__u8 in_traceparent; /* the newest header line: the next one may go on with it */
	__u8 pad[3];
};

/* One direction of a connection. */
struct stream {
	__u64 offset;      /* bytes from the beginning of the stream to 'seq' */
	__u32 seq;         /* TCP sequence number of the next byte to look at */
	__u8 phase;        /* enum phase */
	__u8 carried;      /* bytes in 'carry' */
	__u8 line_is_long; /* the line's beginning was dealt with, the rest is skipped */
	__u8 is_known;     /* seq and offset are set */
	__u64 body_left;
	__u64 head_start_ns;
	__u32 head_length; /* bytes of the head so far */
	__u32 head_seq;    /* 'seq' of the head's first byte */
	__u32 head_ack;    /* how far the other direction was at that time */
	__u32 exchange;    /* of the message in progress */
	__u32 spoken;      /* calls that moved bytes */
	__u32 spoken_mark; /* of the other direction, when this one lost its step */
	__u8 is_lost;      /* a record of this message was lost: no more records of it */
	__u8 is_truncated; /* the head is longer than what is looked at */
	__u8 is_old;       /* open before we looked: the first bytes seen may be in mid-message */
	__u8 in_head;      /* a head has begun (phase START with bytes, or HEAD) */
	__u8 is_tentative; /* this head began where we were out of step: it may be none */
	__u8 began_old;    /* as is_old, and stays */
	__u8 is_unproven;  /* of a first line too long to be seen whole, the end is not seen yet */
	__u8 is_chunk_end; /* the line end behind a chunk comes before the next one's size */
#ifdef BASIC
	__u64 handle; /* subprogram.h */
#endif
	struct head_facts facts;
	__u8 carry[LINE_CARRY];
};

HTTP_INLINE bool http_is_blank(__u8 c)
{
	return c == ' ' || c == '\t';
}

HTTP_INLINE bool http_is_token(__u8 c)
{
	__u8 lower = c | 0x20;

	return (lower >= 'a' && lower <= 'z') || c == '-' || c == '_';
}

/*
 * Whether the 'length' bytes at 'pos' can be the beginning of a message: a method and a blank, or
 * "HTTP/1.". With few bytes the answer is generous; the end of the first line decides.
 */
SUBPROGRAM3(http_start_is_plausible, const struct scan *, scan, __u32, pos, __u32, length)
{
	__u32 i;

	if (!scan)
		return false;
	/* "PRI ": HTTP/2 begins so that it looks like this. */
	if (length >= 4 && HALF(scan, pos) == 0x20495250U)
		return false;
	if (length >= 8 && (WORD(scan, pos) & 0x00ffffffffffffffULL) == 0x2e312f50545448ULL)
		return true; /* "HTTP/1." */
	for (i = 0; i < 24; i++) {
		__u8 c = BYTE(scan, pos + i);

		if (i >= length)
			return true;
		if (c == ' ')
			return i > 0;
		if (i == 4 && c == '/' && (HALF(scan, pos) == 0x50545448U)) /* "HTTP" */
			return length < 8;
		if (!http_is_token(c))
			return false;
	}
	return false;
}

/*
 * Whether 'length' bytes that begin with 'first' begin with 'text' of 'n' bytes, as far as they go.
 */
HTTP_INLINE bool http_begins_with(__u64 first, __u32 length, __u64 text, __u32 n)
{
	if (length < n)
		n = length;
	return n && ((first ^ text) << (64 - 8 * n)) == 0;
}

/*
 * Whether the bytes can be the beginning of a message where that is not known for sure: only the
 * methods of RFC 9110 and PATCH will do then, and "HTTP/1.".
 */
HTTP_INLINE bool http_word_is_known(__u64 first, __u32 length)
{
	/*
	 * GET, HEAD, POST, PUT, DELETE, OPTIONS, PATCH, CONNECT, TRACE, each with its blank;
	 * HTTP/1.
	 */
	return http_begins_with(first, length, 0x20544547ULL, 4) ||
	       http_begins_with(first, length, 0x2044414548ULL, 5) ||
	       http_begins_with(first, length, 0x2054534f50ULL, 5) ||
	       http_begins_with(first, length, 0x20545550ULL, 4) ||
	       http_begins_with(first, length, 0x204554454c4544ULL, 7) ||
	       http_begins_with(first, length, 0x20534e4f4954504fULL, 8) ||
	       http_begins_with(first, length, 0x204843544150ULL, 6) ||
	       http_begins_with(first, length, 0x205443454e4e4f43ULL, 8) ||
	       http_begins_with(first, length, 0x204543415254ULL, 6) ||
	       http_begins_with(first, length, 0x2e312f50545448ULL, 7);
}

SUBPROGRAM3(http_start_is_known, const struct scan *, scan, __u32, pos, __u32, length)
{
	return scan && http_word_is_known(WORD(scan, pos), length);
}

/* Whether a line that ends at 'end' ends as a request's first does: "... HTTP/1.0" or 1.1. */
HTTP_INLINE bool http_ends_request_line(const struct scan *scan, __u32 end)
{
	return (WORD(scan, end - 8) & 0x00ffffffffffffffULL) == 0x2e312f50545448ULL &&
	       BYTE(scan, end - 9) == ' ' && (BYTE(scan, end - 1) & 0xfe) == '0';
}

/* The first line of a message, without its line end; 'is_long': only the beginning is there. */
HTTP_INLINE enum line_result http_start_line(struct stream *s, const struct scan *scan, __u32 pos,
					     __u32 length, bool is_long)
{
	struct head_facts *f = &s->facts;
	__u64 first = WORD(scan, pos);

	if (length >= 12 && (first & 0x00ffffffffffffffULL) == 0x2e312f50545448ULL) {
		__u8 a = BYTE(scan, pos + 9) - '0', b = BYTE(scan, pos + 10) - '0',
		     c = BYTE(scan, pos + 11) - '0';

		if (BYTE(scan, pos + 8) != ' ' || a > 9 || b > 9 || c > 9 || a == 0 ||
		    (BYTE(scan, pos + 7) & 0xfe) != '0') /* HTTP/1.0 or 1.1 */
			return LINE_BAD;
		if (length > 12 && !http_is_blank(BYTE(scan, pos + 12)))
			return LINE_BAD;
		f->is_request = 0;
		f->is_1_0 = BYTE(scan, pos + 7) == '0';
		f->status = a * 100 + b * 10 + c;
		return LINE_MORE;
	}

	if (!http_start_is_plausible(scan, pos, length) || length < 14)
		return LINE_BAD;
	if (!is_long && !http_ends_request_line(scan, pos + length))
		return LINE_BAD;
	s->is_unproven = is_long;
	f->is_request = 1;
	f->is_1_0 = !is_long && BYTE(scan, pos + length - 1) == '0';
	f->method = METHOD_OTHER;
	if ((first & 0xffffffffffULL) == 0x2044414548ULL) /* "HEAD " */
		f->method = METHOD_HEAD;
	else if (first == 0x205443454e4e4f43ULL) /* "CONNECT " */
		f->method = METHOD_CONNECT;
	return LINE_MORE;
}

/*
 * Value of "Content-Length:" from 'at' to 'end': blanks, 1 to 18 digits, blanks. One loop after the
 * other and no flags between them: so the verifier's states converge.
 */
SUBPROGRAM4(http_content_length, struct head_facts *, f, const struct scan *, scan, __u32, at,
	    __u32, end)
{
	__u64 value = 0;
	__u32 first, i;

	if (!f || !scan)
		return 0;
	for (i = 0; i < 16 && at < end && http_is_blank(BYTE(scan, at)); i++)
		at++;
	first = at;
	for (i = 0; i < 18 && at < end; i++) {
		__u8 digit = BYTE(scan, at) - '0';

		if (digit > 9)
			break;
		value = value * 10 + digit;
		at++;
	}
	if (at == first)
		f->is_bad = 1;
	for (i = 0; i < 16 && at < end && http_is_blank(BYTE(scan, at)); i++)
		at++;
	if (at != end || (f->has_length && f->content_length != value))
		f->is_bad = 1;
	f->has_length = 1;
	f->content_length = value;
	return 0;
}

/* Value of "Transfer-Encoding:": only whether the last coding is chunked matters. */
SUBPROGRAM4(http_transfer_encoding, struct head_facts *, f, const struct scan *, scan, __u32, at,
	    __u32, end)
{
	__u32 i;

	if (!f || !scan)
		return 0;
	for (i = 0; i < 16 && at < end && http_is_blank(BYTE(scan, at)); i++)
		at++;
	for (i = 0; i < 16 && at < end && http_is_blank(BYTE(scan, end - 1)); i++)
		end--;
	if (end == at || http_is_blank(BYTE(scan, end - 1))) {
		f->is_bad = 1;
		return 0;
	}
	/* "identity" is no coding, and no longer allowed (RFC 9112, section 7). */
	if (end == at + 8 && (WORD(scan, at) | LOWER) == 0x797469746e656469ULL)
		return 0;
	f->has_coding = 1;
	/* "chunked", 7 bytes: compared as two overlapping words of 4. */
	f->is_chunked =
		end >= at + 7 && (HALF(scan, end - 7) | LOWER32) == 0x6e756863U &&
		(HALF(scan, end - 4) | LOWER32) == 0x64656b6eU &&
		(end == at + 7 || BYTE(scan, end - 8) == ',' || http_is_blank(BYTE(scan, end - 8)));
	return 0;
}

HTTP_INLINE int http_hex(__u8 c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	return -1;
}

/*
 * Value of "traceparent:" by W3C Trace Context, section 3.2: 55 characters in version 00, a '-' may
 * follow in later ones; lower case only; no all-zero ids; a second header makes both invalid.
 */
SUBPROGRAM4(http_traceparent, struct head_facts *, f, const struct scan *, scan, __u32, at, __u32,
	    end)
{
	__u8 any = 0;
	__u32 i;
	int version;

	if (!f || !scan)
		return 0;
	if (f->traceparent != TRACEPARENT_NONE) {
		f->traceparent = TRACEPARENT_INVALID;
		return 0;
	}
	f->traceparent = TRACEPARENT_INVALID;

	for (i = 0; i < 16 && at < end && http_is_blank(BYTE(scan, at)); i++)
		at++;
	for (i = 0; i < 16 && at < end && http_is_blank(BYTE(scan, end - 1)); i++)
		end--;
	if (end < at + 55 || BYTE(scan, at + 2) != '-' || BYTE(scan, at + 35) != '-' ||
	    BYTE(scan, at + 52) != '-')
		return 0;
	if (http_hex(BYTE(scan, at)) < 0 || http_hex(BYTE(scan, at + 1)) < 0)
		return 0;
	version = http_hex(BYTE(scan, at)) << 4 | http_hex(BYTE(scan, at + 1));
	if (version == 0xff || (version == 0 && end != at + 55) ||
	    (end > at + 55 && BYTE(scan, at + 55) != '-'))
		return 0;

	for (i = 0; i < 16; i++) {
		int high = http_hex(BYTE(scan, at + 3 + 2 * i)),
		    low = http_hex(BYTE(scan, at + 4 + 2 * i));

		if (high < 0 || low < 0)
			return 0;
		f->trace_id[i] = high << 4 | low;
		any |= f->trace_id[i];
	}
	if (!any)
		return 0;
	any = 0;
	for (i = 0; i < 8; i++) {
		int high = http_hex(BYTE(scan, at + 36 + 2 * i)),
		    low = http_hex(BYTE(scan, at + 37 + 2 * i));

		if (high < 0 || low < 0)
			return 0;
		f->parent_id[i] = high << 4 | low;
		any |= f->parent_id[i];
	}
	if (!any)
		return 0;
	if (http_hex(BYTE(scan, at + 53)) < 0 || http_hex(BYTE(scan, at + 54)) < 0)
		return 0;
	f->trace_flags = http_hex(BYTE(scan, at + 53)) << 4 | http_hex(BYTE(scan, at + 54));
	f->traceparent = TRACEPARENT_VALID;
	return 0;
}

/*
 * A header line, 'length' bytes without its line end ('is_long': it goes on behind them). A value
 * that goes on, in the next line or behind a blank that was the last byte looked at, is no
 * traceparent.
 */
HTTP_INLINE void http_header_line(struct head_facts *f, const struct scan *scan, __u32 pos,
				  __u32 length, bool is_long)
{
	__u64 name = WORD(scan, pos) | LOWER;
	__u32 end = pos + length;

	if (http_is_blank(BYTE(scan, pos))) {
		if (f->in_traceparent)
			f->traceparent = TRACEPARENT_INVALID;
		return;
	}
	f->in_traceparent = 0;
	if (length < 12)
		return;
	if (name == 0x7261706563617274ULL) {                          /* "tracepar" */
		if ((HALF(scan, pos + 8) | LOWER32) == 0x3a746e65U && /* "ent:" */
		    BYTE(scan, pos + 11) == ':') {
			http_traceparent(f, scan, pos + 12, end);
			f->in_traceparent = 1;
			if (is_long && http_is_blank(BYTE(scan, end - 1)))
				f->traceparent = TRACEPARENT_INVALID;
		}
	} else if (name == 0x2d746e65746e6f63ULL) { /* "content-" */
		if (length >= 15 &&
		    (WORD(scan, pos + 7) | LOWER) == 0x3a6874676e656c2dULL && /* "-length:" */
		    BYTE(scan, pos + 14) == ':')
			http_content_length(f, scan, pos + 15, end);
	} else if (name == 0x726566736e617274ULL) { /* "transfer" */
		if (length >= 18 &&
		    (WORD(scan, pos + 8) | LOWER) == 0x6e69646f636e652dULL && /* "-encodin" */
		    (BYTE(scan, pos + 16) | 0x20) == 'g' && BYTE(scan, pos + 17) == ':')
			http_transfer_encoding(f, scan, pos + 18, end);
	}
}

#define CHUNK_DIGITS_MAX 32 /* leading zeros are allowed */

/*
 * A chunk-size line: hex digits, then nothing, blanks or an extension. Sets body_left to the chunk.
 * Behind one comes an empty line, which some end with a LF alone.
 */
SUBPROGRAM4(http_chunk_line, struct stream *, s, const struct scan *, scan, __u32, pos, __u32,
	    length)
{
	__u64 size = 0;
	__u32 i;

	if (!s || !scan)
		return LINE_BAD;
	if (s->is_chunk_end) {
		s->is_chunk_end = 0;
		return length ? LINE_BAD : LINE_MORE;
	}
	for (i = 0; i < CHUNK_DIGITS_MAX; i++) {
		int lower = BYTE(scan, pos + i), digit;

		if (i >= length)
			break;
		if (lower >= 'A' && lower <= 'F')
			lower |= 0x20;
		digit = http_hex(lower);
		if (digit < 0) {
			if (i && (lower == ';' || http_is_blank(lower)))
				break;
			return LINE_BAD;
		}
		if (size >> 48)
			return LINE_BAD;
		size = size << 4 | digit;
	}
	if (!i || (i == CHUNK_DIGITS_MAX && i < length))
		return LINE_BAD;
	if (!size) {
		s->phase = PHASE_TRAILER;
		return LINE_MORE;
	}
	s->body_left = size;
	s->is_chunk_end = 1;
	s->phase = PHASE_BODY;
	return LINE_BODY;
}

HTTP_INLINE bool is_framing(const struct scan *scan, __u32 pos, __u32 length)
{
	__u64 name = WORD(scan, pos) | LOWER;

	return length >= 18 && (name == 0x726566736e617274ULL ||
				(name == 0x2d746e65746e6f63ULL &&
				 (WORD(scan, pos + 7) | LOWER) == 0x3a6874676e656c2dULL));
}

/*
 * One line at 'pos', 'length' bytes without its '\n' ('is_long': the line goes on behind them).
 * Moves the stream from PHASE_START to PHASE_HEAD behind the first line; the caller moves it on at
 * LINE_HEAD_END and LINE_DONE.
 */
SUBPROGRAM5(http_line, struct stream *, s, const struct scan *, scan, __u32, pos, __u32, length,
	    bool, is_long)
{
	bool has_cr;
	int r;

	if (!s || !scan)
		return LINE_BAD;
	has_cr = !is_long && length && BYTE(scan, pos + length - 1) == '\r';
	if (has_cr)
		length--;

	switch (s->phase) {
	case PHASE_START:
		if (!length)
			return LINE_MORE; /* empty lines before a request are allowed (RFC
					     9112, 2.2) */
		r = http_start_line(s, scan, pos, length, is_long);
		if (r == LINE_MORE)
			s->phase = PHASE_HEAD;
		/* For some a request's first line does not end at a LF alone. */
		if (s->facts.is_request && !has_cr && !is_long)
			s->facts.is_bad = 1;
		return r;
	case PHASE_HEAD:
		if (!length)
			return LINE_HEAD_END;
		s->facts.fields += s->facts.fields < 255;
		http_header_line(&s->facts, scan, pos, length, is_long);
		/* Framing that is told in a line too long to be seen whole. */
		if (is_long && (s->facts.has_coding || s->facts.has_length) &&
		    is_framing(scan, pos, length))
			s->facts.is_bad = 1;
		return LINE_MORE;
	case PHASE_CHUNK_SIZE:
		return is_long ? LINE_BAD : http_chunk_line(s, scan, pos, length);
	case PHASE_TRAILER:
		return length ? LINE_MORE : LINE_DONE;
	default:
		return LINE_BAD;
	}
}

/*
 * The '\n' of a line whose beginning was dealt with. Other protocols have lines that begin as a
 * request does, and are as long.
 */
HTTP_INLINE int http_long_line_end(struct stream *s, const struct scan *scan, __u32 newline)
{
	bool is_unproven = s->is_unproven, has_cr = BYTE(scan, newline - 1) == '\r';

	s->line_is_long = 0;
	s->is_unproven = 0;
	if (has_cr)
		newline--;
	if (!is_unproven)
		return LINE_MORE;
	if (!has_cr)
		s->facts.is_bad = 1;
	s->facts.is_1_0 = BYTE(scan, newline - 1) == '0';
	return http_ends_request_line(scan, newline) ? LINE_MORE : LINE_BAD;
}

#define LINE_LOOK   256
#define NO_NEWLINE  0xffff
#define NEWLINE_AT  0xffff
#define HAS_BARE_CR 0x10000

/* The highest bit of each byte of the word that is 'byte', given in all bytes. */
HTTP_INLINE __u64 http_bytes_equal(__u64 word, __u64 byte)
{
	const __u64 low = 0x7f7f7f7f7f7f7f7fULL;
	__u64 x = word ^ byte;

	return ~(((x & low) + low) | x | low);
}

/*
 * Position of the first '\n' in [pos, end), looking at LINE_LOOK bytes at most; else NO_NEWLINE. And
 * HAS_BARE_CR: a '\r' was seen on the way there that has no '\n' behind it.
 */
SUBPROGRAM3(http_find_newline, const struct scan *, scan, __u32, pos, __u32, end)
{
	__u64 behind = 0, bare = 0; /* a byte behind a '\r'; one that is no '\n' */
	__u32 k;

	if (!scan)
		return NO_NEWLINE;
	for (k = 0; k < LINE_LOOK; k += 8) {
		__u64 word = WORD(scan, pos + k);
		__u64 hit = http_bytes_equal(word, 0x0a0a0a0a0a0a0a0aULL);
		__u64 cr = http_bytes_equal(word, 0x0d0d0d0d0d0d0d0dULL);
		__u64 seen = ~0ULL;

		if (pos + k >= end)
			break;
		/* What is before the end, and up to the '\n'. */
		if (end - pos - k < 8)
			seen = (1ULL << (8 * ((end - pos - k) & 7))) - 1;
		hit &= seen;
		if (hit)
			seen = (hit & -hit) - 1;
		bare |= (behind | cr << 8) & ~hit & seen;
		behind = cr >> 56;
		if (hit) {
			/* Bytes up to its own are counted without a special instruction. */
			__u32 at = pos + k - 1 +
				   (((seen & 0x0101010101010101ULL) * 0x0101010101010101ULL) >> 56);

			return (at & NEWLINE_AT) | (bare ? HAS_BARE_CR : 0);
		}
	}
	return NO_NEWLINE | (bare ? HAS_BARE_CR : 0);
}

/*
 * How a message goes on behind its head, from its facts; 'request_method' is that of a response's
 * request.
 */
HTTP_INLINE void http_begin_body(struct stream *s, __u8 request_method, bool *ret_is_complete,
				 bool *ret_is_tunnel)
{
	const struct head_facts *f = &s->facts;

	*ret_is_complete = false;
	*ret_is_tunnel = false;
	s->body_left = 0;
	if (!f->is_request) {
		if (f->status == 101 ||
		    (request_method == METHOD_CONNECT && f->status / 100 == 2)) {
			*ret_is_tunnel = true;
			*ret_is_complete = true;
			return;
		}
		if (f->status / 100 == 1 || f->status == 204 || f->status == 304 ||
		    request_method == METHOD_HEAD) {
			*ret_is_complete = true;
			return;
		}
	}
	/* RFC 9112, section 6.1: for some a coding means nothing before HTTP/1.1. */
	if (f->has_coding && f->is_1_0)
		s->facts.is_bad = 1;
	if (f->has_coding) {
		s->phase = f->is_chunked ? PHASE_CHUNK_SIZE : PHASE_TO_CLOSE;
	} else if (f->has_length) {
		s->body_left = f->content_length;
		s->phase = PHASE_BODY;
		*ret_is_complete = f->content_length == 0;
	} else if (f->is_request) {
		*ret_is_complete = true;
	} else {
		s->phase = PHASE_TO_CLOSE;
	}
}
