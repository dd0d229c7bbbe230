/*
 * Measured offsets; see go_measured.h. Measured with Go 1.17.13, 1.18.10, 1.19.13, 1.20.14,
 * 1.21.13, 1.22.12, 1.23.12, 1.24.13, 1.25.14, 1.26.8, 1.26.11 and 1.27.4, amd64 and arm64.
 * Layouts may change within a minor version (1.26 did it to response): such rows are left out for
 * that minor version.
 */
#include "image/go_measured.h"

#define MINOR_MIN 17
#define MINOR_MAX 27

struct measured {
	enum go_field field;
	uint8_t from, to; /* minor versions, both included */
	uint16_t bytes;
};

static const struct measured rows[] = {
	{GO_FIELD_G_M, 17, 27, 48},
	{GO_FIELD_G_ATOMICSTATUS, 17, 22, 144},
	{GO_FIELD_G_ATOMICSTATUS, 23, 24, 152},
	{GO_FIELD_G_ATOMICSTATUS, 25, 27, 144},
	{GO_FIELD_G_GOID, 17, 22, 152},
	{GO_FIELD_G_GOID, 23, 24, 160},
	{GO_FIELD_G_GOID, 25, 27, 152},
	{GO_FIELD_G_PARENT_GOID, 21, 22, 272},
	{GO_FIELD_G_PARENT_GOID, 23, 24, 280},
	{GO_FIELD_G_PARENT_GOID, 25, 25, 272},
	{GO_FIELD_G_PARENT_GOID, 26, 27, 280},
	{GO_FIELD_G_GOPC, 17, 20, 296},
	{GO_FIELD_G_GOPC, 21, 22, 280},
	{GO_FIELD_G_GOPC, 23, 24, 288},
	{GO_FIELD_G_GOPC, 25, 25, 280},
	{GO_FIELD_G_GOPC, 26, 27, 288},
	{GO_FIELD_G_STARTPC, 17, 20, 312},
	{GO_FIELD_G_STARTPC, 21, 22, 296},
	{GO_FIELD_G_STARTPC, 23, 24, 304},
	{GO_FIELD_G_STARTPC, 25, 25, 296},
	{GO_FIELD_G_STARTPC, 26, 27, 304},
	{GO_FIELD_M_G0, 17, 27, 0},
	{GO_FIELD_M_CURG, 17, 24, 192},
	{GO_FIELD_M_CURG, 25, 27, 184},
	{GO_FIELD_PERSIST_CONN_T, 17, 27, 16},
	{GO_FIELD_PERSIST_CONN_CONN, 17, 27, 80},
	{GO_FIELD_PERSIST_CONN_TLS_STATE, 17, 27, 96},
	{GO_FIELD_PERSIST_CONN_BR, 17, 27, 104},
	{GO_FIELD_PERSIST_CONN_BW, 17, 27, 112},
	{GO_FIELD_PERSIST_CONN_CLOSED, 17, 25, 232},
	{GO_FIELD_PERSIST_CONN_CLOSED, 26, 27, 240},
	{GO_FIELD_TCP_CONN_CONN, 17, 27, 0},
	{GO_FIELD_NET_CONN_FD, 17, 27, 0},
	{GO_FIELD_NET_FD_PFD, 17, 27, 0},
	{GO_FIELD_NET_FD_LADDR, 17, 27, 96},
	{GO_FIELD_NET_FD_RADDR, 17, 27, 112},
	{GO_FIELD_POLL_FD_SYSFD, 17, 27, 16},
	{GO_FIELD_REQUEST_METHOD, 17, 27, 0},
	{GO_FIELD_REQUEST_URL, 17, 27, 16},
	{GO_FIELD_REQUEST_PROTO, 17, 27, 24},
	{GO_FIELD_REQUEST_HEADER, 17, 27, 56},
	{GO_FIELD_REQUEST_CONTENT_LENGTH, 17, 27, 88},
	{GO_FIELD_REQUEST_HOST, 17, 27, 128},
	{GO_FIELD_REQUEST_REMOTE_ADDR, 17, 27, 176},
	{GO_FIELD_REQUEST_REQUEST_URI, 17, 27, 192},
	{GO_FIELD_REQUEST_TLS, 17, 27, 208},
	{GO_FIELD_REQUEST_CTX, 17, 22, 232},
	{GO_FIELD_REQUEST_PATTERN, 23, 27, 232},
	{GO_FIELD_REQUEST_CTX, 23, 27, 248},
	{GO_FIELD_CLIENT_RESPONSE_STATUS_CODE, 17, 27, 16},
	{GO_FIELD_CLIENT_RESPONSE_REQUEST, 17, 27, 128},
	{GO_FIELD_RESPONSE_CONN, 17, 27, 0},
	{GO_FIELD_RESPONSE_REQ, 17, 27, 8},
	{GO_FIELD_RESPONSE_WRITTEN, 17, 25, 104},
	{GO_FIELD_RESPONSE_WRITTEN, 27, 27, 112},
	{GO_FIELD_RESPONSE_STATUS, 17, 25, 120},
	{GO_FIELD_RESPONSE_STATUS, 27, 27, 128},
	{GO_FIELD_CONN_RWC, 17, 27, 16},
	{GO_FIELD_CONN_REMOTE_ADDR, 17, 27, 32},
	{GO_FIELD_CONN_CUR_REQ, 17, 27, 112},
	{GO_FIELD_VALUE_CTX_CONTEXT, 17, 27, 0},
	{GO_FIELD_VALUE_CTX_KEY, 17, 27, 16},
	{GO_FIELD_VALUE_CTX_VAL, 17, 27, 32},
	{GO_FIELD_CANCEL_CTX_CONTEXT, 17, 27, 0},
	{GO_FIELD_TIMER_CTX_CANCEL_CTX, 17, 19, 0},
	{GO_FIELD_TIMER_CTX_CANCEL_CTX_POINTER, 20, 20, 0},
	{GO_FIELD_TIMER_CTX_CANCEL_CTX, 21, 27, 0},
	{GO_FIELD_WITHOUT_CANCEL_CTX_C, 21, 27, 0},
	{GO_FIELD_WRITER_BUF, 17, 27, 16},
	{GO_FIELD_WRITER_N, 17, 27, 40},
	{GO_FIELD_WRITER_WR, 17, 27, 48},
	{GO_FIELD_URL_SCHEME, 17, 27, 0},
	{GO_FIELD_URL_HOST, 17, 27, 40},
	{GO_FIELD_URL_PATH, 17, 27, 56},
	{GO_FIELD_URL_RAW_QUERY, 17, 25, 96},
	{GO_FIELD_URL_RAW_QUERY, 26, 27, 88},
	{GO_FIELD_TLS_CONN_CONN, 17, 27, 0},
	{GO_FIELD_TLS_CONN_IS_CLIENT, 17, 27, 16},
};

/*
 * The minor version of a release ("go1.26.8", "go1.21"); 0 for all others: candidates and
 * compilers in development need not be like what they end as.
 */
static unsigned int minor_of(const char *version)
{
	const char *p = version;
	unsigned int minor = 0;

	if (strncmp(p, "go1.", 4) != 0)
		return 0;
	for (p += 4; *p >= '0' && *p <= '9' && minor < 1000; p++)
		minor = minor * 10 + (unsigned int)(*p - '0');
	if (*p == '.') {
		p++;
		if (!*p)
			return 0;
		while (*p >= '0' && *p <= '9')
			p++;
	}
	return *p ? 0 : minor;
}

static bool applies(const struct measured *row, unsigned int minor)
{
	return row->from <= minor && minor <= row->to;
}

void go_measured_fill(struct go_program *program)
{
	unsigned int minor = minor_of(program->version);

	if (minor < MINOR_MIN || minor > MINOR_MAX)
		return;
	/* A version that the types contradict is a lie. */
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		const struct go_offset *offset = &program->offsets[rows[i].field];

		if (applies(&rows[i], minor) && offset->source == GO_SOURCE_TYPES &&
		    offset->bytes != rows[i].bytes)
			return;
	}
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct go_offset *offset = &program->offsets[rows[i].field];

		/* Of a struct that the program describes, the description is all there is. */
		if (applies(&rows[i], minor) &&
		    program->layouts[go_field_struct(rows[i].field)] == 0)
			*offset = (struct go_offset){.source = GO_SOURCE_TABLE,
						     .bytes = rows[i].bytes};
	}
}
