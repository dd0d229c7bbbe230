/*
 * What can be probed in a Go program, and how: where its functions are, at which instruction a
 * probe costs least and does no harm, and where the fields are that a probe reads. For whoever
 * attaches probes and fills in the tables that the kernel side reads. Go 1.17 to 1.27 on amd64,
 * 1.18 to 1.27 on arm64; stripped or not, position independent or not, linked by Go or by another
 * linker, with or without section headers. Nothing here needs symbols or DWARF.
 *
 * Promised:
 * - A site is the first byte of an instruction, in an executable segment, of the kind its class
 *   says, with R14 (arm64 R28) the goroutine and, at every class but those of calls and at
 *   returns, the function's arguments still in registers (ABIInternal).
 * - A doubt gives no site: 'class' is GO_SITE_NONE and 'reason' says why, in words for a user. The
 *   same holds for the returns of a function: all of them, or none and a reason.
 * - An offset is known from the program's own types (the layout has been recomputed from the sizes
 *   and alignments of the fields, and agrees), or from a table of measured versions where the
 *   program has no such type; else it is unknown. The version in the file is never enough to
 *   contradict the types.
 * - The file is a stranger's: it is read with pread, never mapped, a bounded number of bytes and
 *   times, with less than 1 MiB of memory. Nothing in it crashes or blocks the reader.
 *
 * All addresses are those of the file (without load bias), all offsets of sites those within the
 * file, as uprobes want them. Everything is for one thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/util.h"
#include "image/image.h"

/* --- functions */

/* Generic functions are written `Name[...]`, as the function table has them. */
#define GO_FUNCTIONS(X)                                                             \
	X(ROUND_TRIP, "net/http.(*persistConn).roundTrip")                          \
	X(WRITE_LOOP, "net/http.(*persistConn).writeLoop")                          \
	X(TRANSPORT_ROUND_TRIP, "net/http.(*Transport).roundTrip")                  \
	X(DIAL_CONN, "net/http.(*Transport).dialConn")                              \
	X(WRITE_SUBSET, "net/http.Header.writeSubset")                              \
	X(SERVE_HTTP, "net/http.serverHandler.ServeHTTP")                           \
	X(CONN_SERVE, "net/http.(*conn).serve")                                     \
	X(READ_REQUEST, "net/http.(*conn).readRequest")                             \
	X(FINISH_REQUEST, "net/http.(*response).finishRequest")                     \
	X(TLS_READ, "crypto/tls.(*Conn).Read")                                      \
	X(TLS_WRITE, "crypto/tls.(*Conn).Write")                                    \
	X(NEWPROC1, "runtime.newproc1")                                             \
	X(NEWPROC_FUNC1, "runtime.newproc.func1")                                   \
	X(RUNQPUT, "runtime.runqput")                                               \
	X(GOEXIT0, "runtime.goexit0")                                               \
	X(FASTHTTP_SERVE_CONN, "github.com/valyala/fasthttp.(*Server).serveConn")   \
	X(FASTHTTP_DO, "github.com/valyala/fasthttp.(*HostClient).doNonNilReqResp") \
	X(GIN_HANDLE, "github.com/gin-gonic/gin.(*Engine).handleHTTPRequest")       \
	X(GIN_NEXT, "github.com/gin-gonic/gin.(*Context).Next")                     \
	X(ECHO_FIND, "github.com/labstack/echo/v4.(*Router).Find")                  \
	X(ECHO_5_ROUTE, "github.com/labstack/echo/v5.(*DefaultRouter).Route")       \
	X(CHI_FIND_ROUTE, "github.com/go-chi/chi/v5.(*node).FindRoute")             \
	X(GORILLA_WITH_ROUTE, "github.com/gorilla/mux.requestWithRoute")

enum go_function {
#define GO_FUNCTION_ENUM(id, name) GO_FUNCTION_##id,
	GO_FUNCTIONS(GO_FUNCTION_ENUM)
#undef GO_FUNCTION_ENUM
		_GO_FUNCTION_MAX,
};

const char *go_function_name(enum go_function function);

/*
 * Cheapest first. The kernel emulates the first four (arch/x86/kernel/uprobes.c, arm64's
 * simulate-insn.c) and single-steps the others, at some twenty times the price.
 */
enum go_site_class {
	GO_SITE_NONE,
	GO_SITE_PUSH_BP,    /* amd64: PUSHQ BP past the stack check: once a call */
	GO_SITE_STACK_JCC,  /* amd64: the stack check's jump: again when the stack has grown */
	GO_SITE_STACK_B_LS, /* arm64: the same */
	GO_SITE_CALL,       /* a CALL, or BL, within the function */
	GO_SITE_BODY,       /* past the stack check and the frame's allocation: once a call */
	GO_SITE_AFTER_CALL, /* behind a call within the function: its results are in registers */
	_GO_SITE_MAX,
};

const char *go_site_class_name(enum go_site_class class);

struct go_site {
	enum go_site_class class;
	uint64_t offset;
	const char *reason; /* of GO_SITE_NONE; a constant */
};

#define GO_RETURNS_MAX 64

struct go_function_facts {
	bool is_found;
	uint64_t address; /* of the first instruction */
	uint64_t size;
	uint64_t offset; /* of the first instruction */
	struct go_site site;
	/* Its RET instructions: all of them, or 0 and a reason. */
	unsigned int n_returns;
	uint64_t returns[GO_RETURNS_MAX];
	const char *no_returns_reason;
	uint64_t code_hash; /* for the cache */
};

/* --- fields */

/*
 * id, struct, name, and what it must be (see go_types.c): a field that is anything else is unknown.
 * INTEGER has 8 bytes; MAP is a pointer; of a STRUCT the offset is that of its first field.
 */
#define GO_FIELDS(X)                                                            \
	X(G_STACK, G, "stack", STRUCT)                                          \
	X(G_M, G, "m", POINTER)                                                 \
	X(G_ATOMICSTATUS, G, "atomicstatus", FOUR_BYTES)                        \
	X(G_GOID, G, "goid", INTEGER)                                           \
	X(G_PARENT_GOID, G, "parentGoid", INTEGER)                              \
	X(G_GOPC, G, "gopc", INTEGER)                                           \
	X(G_STARTPC, G, "startpc", INTEGER)                                     \
	X(M_G0, M, "g0", POINTER)                                               \
	X(M_CURG, M, "curg", POINTER)                                           \
	X(PERSIST_CONN_T, PERSIST_CONN, "t", POINTER)                           \
	X(PERSIST_CONN_CONN, PERSIST_CONN, "conn", INTERFACE)                   \
	X(PERSIST_CONN_TLS_STATE, PERSIST_CONN, "tlsState", POINTER)            \
	X(PERSIST_CONN_BR, PERSIST_CONN, "br", POINTER)                         \
	X(PERSIST_CONN_BW, PERSIST_CONN, "bw", POINTER)                         \
	X(PERSIST_CONN_CLOSED, PERSIST_CONN, "closed", INTERFACE)               \
	X(TCP_CONN_CONN, TCP_CONN, "conn", STRUCT)                              \
	X(NET_CONN_FD, NET_CONN, "fd", POINTER)                                 \
	X(NET_FD_PFD, NET_FD, "pfd", STRUCT)                                    \
	X(NET_FD_LADDR, NET_FD, "laddr", INTERFACE)                             \
	X(NET_FD_RADDR, NET_FD, "raddr", INTERFACE)                             \
	X(POLL_FD_SYSFD, POLL_FD, "Sysfd", INTEGER)                             \
	X(REQUEST_METHOD, REQUEST, "Method", STRING)                            \
	X(REQUEST_URL, REQUEST, "URL", POINTER)                                 \
	X(REQUEST_PROTO, REQUEST, "Proto", STRING)                              \
	X(REQUEST_HEADER, REQUEST, "Header", MAP)                               \
	X(REQUEST_BODY, REQUEST, "Body", INTERFACE)                             \
	X(REQUEST_CONTENT_LENGTH, REQUEST, "ContentLength", INTEGER)            \
	X(REQUEST_HOST, REQUEST, "Host", STRING)                                \
	X(REQUEST_REMOTE_ADDR, REQUEST, "RemoteAddr", STRING)                   \
	X(REQUEST_REQUEST_URI, REQUEST, "RequestURI", STRING)                   \
	X(REQUEST_TLS, REQUEST, "TLS", POINTER)                                 \
	X(REQUEST_RESPONSE, REQUEST, "Response", POINTER)                       \
	X(REQUEST_PATTERN, REQUEST, "Pattern", STRING)                          \
	X(REQUEST_CTX, REQUEST, "ctx", INTERFACE)                               \
	X(REQUEST_PAT, REQUEST, "pat", POINTER)                                 \
	X(CLIENT_RESPONSE_STATUS_CODE, CLIENT_RESPONSE, "StatusCode", INTEGER)  \
	X(CLIENT_RESPONSE_REQUEST, CLIENT_RESPONSE, "Request", POINTER)         \
	X(RESPONSE_CONN, RESPONSE, "conn", POINTER)                             \
	X(RESPONSE_REQ, RESPONSE, "req", POINTER)                               \
	X(RESPONSE_WRITTEN, RESPONSE, "written", INTEGER)                       \
	X(RESPONSE_STATUS, RESPONSE, "status", INTEGER)                         \
	X(CONN_RWC, CONN, "rwc", INTERFACE)                                     \
	X(CONN_REMOTE_ADDR, CONN, "remoteAddr", STRING)                         \
	X(CONN_CUR_REQ, CONN, "curReq", STRUCT)                                 \
	X(TRANSPORT_REQUEST_REQUEST, TRANSPORT_REQUEST, "Request", POINTER)     \
	X(TRANSPORT_REQUEST_EXTRA, TRANSPORT_REQUEST, "extra", MAP)             \
	X(TRANSPORT_REQUEST_CTX, TRANSPORT_REQUEST, "ctx", INTERFACE)           \
	X(CONN_BUFW, CONN, "bufw", POINTER)                                     \
	/* Before 1.20 an atomic.Value, which is larger. */                     \
	X(CONN_CUR_REQ_POINTER, CONN, "curReq", POINTER_STRUCT)                 \
	X(PATTERN_STR, PATTERN, "str", STRING)                                  \
	X(GIN_CONTEXT_WRITERMEM, GIN_CONTEXT, "writermem", STRUCT)              \
	X(GIN_CONTEXT_REQUEST, GIN_CONTEXT, "Request", POINTER)                 \
	X(GIN_CONTEXT_FULL_PATH, GIN_CONTEXT, "fullPath", STRING)               \
	X(GIN_WRITER_WRITER, GIN_WRITER, "ResponseWriter", INTERFACE)           \
	X(ECHO_CONTEXT_RESPONSE, ECHO_CONTEXT, "response", POINTER)             \
	X(ECHO_CONTEXT_PATH, ECHO_CONTEXT, "path", STRING)                      \
	X(ECHO_RESPONSE_WRITER, ECHO_RESPONSE, "Writer", INTERFACE)             \
	X(ECHO_5_CONTEXT_RESPONSE, ECHO_5_CONTEXT, "orgResponse", POINTER)      \
	X(ECHO_5_CONTEXT_PATH, ECHO_5_CONTEXT, "path", STRING)                  \
	X(ECHO_5_RESPONSE_WRITER, ECHO_5_RESPONSE, "ResponseWriter", INTERFACE) \
	X(CHI_CONTEXT_PARENT, CHI_CONTEXT, "parentCtx", INTERFACE)              \
	X(CHI_CONTEXT_PATTERNS, CHI_CONTEXT, "RoutePatterns", SLICE)            \
	X(GORILLA_ROUTE_CONF, GORILLA_ROUTE, "routeConf", STRUCT)               \
	X(GORILLA_CONF_REGEXP, GORILLA_CONF, "regexp", STRUCT)                  \
	X(GORILLA_GROUP_PATH, GORILLA_GROUP, "path", POINTER)                   \
	X(GORILLA_REGEXP_TEMPLATE, GORILLA_REGEXP, "template", STRING)          \
	X(VALUE_CTX_CONTEXT, VALUE_CTX, "Context", INTERFACE)                   \
	X(VALUE_CTX_KEY, VALUE_CTX, "key", INTERFACE)                           \
	X(VALUE_CTX_VAL, VALUE_CTX, "val", INTERFACE)                           \
	X(CANCEL_CTX_CONTEXT, CANCEL_CTX, "Context", INTERFACE)                 \
	X(TIMER_CTX_CANCEL_CTX, TIMER_CTX, "cancelCtx", STRUCT)                 \
	/* In 1.20 a pointer: at most one of the two is known. */               \
	X(TIMER_CTX_CANCEL_CTX_POINTER, TIMER_CTX, "cancelCtx", POINTER)        \
	X(WITHOUT_CANCEL_CTX_C, WITHOUT_CANCEL_CTX, "c", INTERFACE)             \
	X(WRITER_BUF, WRITER, "buf", SLICE)                                     \
	X(WRITER_N, WRITER, "n", INTEGER)                                       \
	X(WRITER_WR, WRITER, "wr", INTERFACE)                                   \
	X(URL_SCHEME, URL, "Scheme", STRING)                                    \
	X(URL_HOST, URL, "Host", STRING)                                        \
	X(URL_PATH, URL, "Path", STRING)                                        \
	X(URL_RAW_QUERY, URL, "RawQuery", STRING)                               \
	X(TLS_CONN_CONN, TLS_CONN, "conn", INTERFACE)                           \
	X(TLS_CONN_IS_CLIENT, TLS_CONN, "isClient", BOOL)

enum go_field {
#define GO_FIELD_ENUM(id, struct_id, name, kind) GO_FIELD_##id,
	GO_FIELDS(GO_FIELD_ENUM)
#undef GO_FIELD_ENUM
		_GO_FIELD_MAX,
};

enum go_struct {
	GO_STRUCT_G,                  /* runtime.g */
	GO_STRUCT_M,                  /* runtime.m */
	GO_STRUCT_PERSIST_CONN,       /* net/http.persistConn */
	GO_STRUCT_TCP_CONN,           /* net.TCPConn (and the others that embed net.conn alone) */
	GO_STRUCT_NET_CONN,           /* net.conn */
	GO_STRUCT_NET_FD,             /* net.netFD */
	GO_STRUCT_POLL_FD,            /* internal/poll.FD */
	GO_STRUCT_REQUEST,            /* net/http.Request */
	GO_STRUCT_CLIENT_RESPONSE,    /* net/http.Response */
	GO_STRUCT_RESPONSE,           /* net/http.response: a server's */
	GO_STRUCT_CONN,               /* net/http.conn: a server's */
	GO_STRUCT_TRANSPORT_REQUEST,  /* net/http.transportRequest */
	GO_STRUCT_SERVER,             /* net/http.Server */
	GO_STRUCT_VALUE_CTX,          /* context.valueCtx */
	GO_STRUCT_CANCEL_CTX,         /* context.cancelCtx */
	GO_STRUCT_TIMER_CTX,          /* context.timerCtx */
	GO_STRUCT_WITHOUT_CANCEL_CTX, /* context.withoutCancelCtx */
	GO_STRUCT_WRITER,             /* bufio.Writer */
	GO_STRUCT_URL,                /* net/url.URL */
	GO_STRUCT_TLS_CONN,           /* crypto/tls.Conn */
	GO_STRUCT_PATTERN,            /* net/http.pattern */
	GO_STRUCT_GIN_CONTEXT,        /* github.com/gin-gonic/gin.Context */
	GO_STRUCT_GIN_WRITER,         /* github.com/gin-gonic/gin.responseWriter */
	GO_STRUCT_ECHO_CONTEXT,       /* github.com/labstack/echo/v4.context */
	GO_STRUCT_ECHO_RESPONSE,      /* github.com/labstack/echo/v4.Response */
	GO_STRUCT_ECHO_5_CONTEXT,     /* github.com/labstack/echo/v5.Context */
	GO_STRUCT_ECHO_5_RESPONSE,    /* github.com/labstack/echo/v5.Response */
	GO_STRUCT_CHI_CONTEXT,        /* github.com/go-chi/chi/v5.Context */
	GO_STRUCT_GORILLA_ROUTE,      /* github.com/gorilla/mux.Route */
	GO_STRUCT_GORILLA_CONF,       /* github.com/gorilla/mux.routeConf */
	GO_STRUCT_GORILLA_GROUP,      /* github.com/gorilla/mux.routeRegexpGroup */
	GO_STRUCT_GORILLA_REGEXP,     /* github.com/gorilla/mux.routeRegexp */
	_GO_STRUCT_MAX,
};

/* "goid", of "runtime.g" */
const char *go_field_name(enum go_field field);
enum go_struct go_field_struct(enum go_field field);
const char *go_struct_name(enum go_struct id);

enum go_source {
	GO_SOURCE_NONE, /* unknown */
	GO_SOURCE_TYPES,
	GO_SOURCE_TABLE,
	_GO_SOURCE_MAX,
};

struct go_offset {
	enum go_source source;
	uint32_t bytes;
};

/* --- a program */

#define GO_BUILD_ID_MAX 136

struct go_program {
	char build_id[GO_BUILD_ID_MAX];  /* "go:...", "gnu:<hex>", "hash:<hex>" */
	char version[IMAGE_VERSION_MAX]; /* "go1.26.8", as the file says; empty: unknown */
	bool is_arm64;
	bool is_pie;           /* addresses are to be biased */
	uint64_t text_address; /* runtime.text */
	uint64_t text_bytes;   /* up to runtime.etext: what Go's linker wrote, and no C */
	uint64_t file_bytes;
	uint64_t entry;     /* of the ELF header */
	const char *reason; /* no function can be probed at all, and why; NULL: see each function */
	struct go_function_facts functions[_GO_FUNCTION_MAX];
	/*
	 * The call of runtime.runqput in runtime.newproc.func1: R14 (arm64 R28) is g0, BX (arm64
	 * R1) the new goroutine, which has its goid already; its parent is curg of g0's m.
	 */
	struct go_site newproc_runqput;
	/*
	 * What a build with a profile leaves, where it has the callee's code in the caller. Behind
	 * the call of runtime.newproc1 in runtime.newproc.func1: AX (arm64 R0) is the new goroutine.
	 * Behind that of (*conn).readRequest in net/http.(*conn).serve: AX is the *response, 0 if
	 * there is none.
	 */
	struct go_site newproc_begun, request_read;
	struct go_site
		gin_next; /* the call of gin's (*Context).Next in its (*Engine).handleHTTPRequest */
	struct go_offset offsets[_GO_FIELD_MAX];
	/*
	 * Addresses of the structs' type descriptors (abi.Type); 0: unknown, or several types are
	 * alike. An interface with methods begins with a pointer to an itab, whose word at 8 is the
	 * descriptor of what it holds; that of a pointer has what it points to at 48. So a context
	 * is a *valueCtx if the word at 48 of the word at 8 of its first word is this address, with
	 * the program's load bias.
	 */
	uint64_t types[_GO_STRUCT_MAX];
	uint64_t layouts[_GO_STRUCT_MAX]; /* the same, or one of several that are alike */
	uint64_t context_interface; /* likewise of context.Context, an interface; 0: unknown */
};

struct go_program_options {
	bool without_types; /* for tests: as if the program had no types */
	bool without_table; /* for tests: as if no version had been measured */
};

/*
 * Reads the program behind 'fd', as image_probe() does. Returns 0, IMAGE_NOT_REGULAR,
 * IMAGE_NOT_ELF (see image.h), GO_PROGRAM_NOT_GO, or a negative errno (-ENOMEM, those of fstat and
 * pread). Free with go_program_free(). 'options' may be NULL.
 */
enum { GO_PROGRAM_NOT_GO = 16 };
int go_program_read(int fd, const struct go_program_options *options,
		    struct go_program **ret_program);
void go_program_free(struct go_program *program);
DEFINE_CLEANUP(struct go_program *, go_program_free);

/* --- a cache of programs by build id */

struct go_cache;

struct go_cache_stats {
	uint64_t hits;
	uint64_t reads;      /* of a whole program */
	uint64_t evictions;  /* of the program that was not asked for the longest */
	uint64_t mismatches; /* same build id, other code or types: read, and put in its place */
};

int go_cache_new(size_t programs_max, struct go_cache **ret_cache);
void go_cache_free(struct go_cache *cache);
DEFINE_CLEANUP(struct go_cache *, go_cache_free);

/*
 * Like go_program_read(), but a program that is known is not read again, whatever file it is in.
 * A build id is what a file says of itself: that the code of each function found and each type are
 * the same is checked first. The program is the cache's, and valid until the next call.
 */
int go_cache_get(struct go_cache *cache, int fd, const struct go_program **ret_program);

const struct go_cache_stats *go_cache_stats(const struct go_cache *cache);
