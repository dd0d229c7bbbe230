/*
 * Struct layouts; see go_types.h.
 *
 * A type descriptor (abi.Type, 48 bytes): size 0, field alignment 22, kind 23 (its low five bits).
 * Of a struct there follow: package path 48 (a name; of structs with unexported fields), fields 56
 * (pointer, length, capacity). Of a pointer: the type it points to, at 48. A field: name, type,
 * offset, a word each. Go 1.17 and 1.18 store the offset doubled, with a bit for embedded fields.
 * A name: a byte of flags, a varint length, the bytes.
 */
#include "image/go_types.h"

#include <errno.h>

#define TYPE_BYTES     48
#define STRUCT_BYTES   80
#define FIELD_BYTES    24
#define SIZE_MAX_BYTES (1 << 20) /* of a struct; the largest that is looked for has 2 KB */
#define FIELDS_MAX     256       /* of a struct; runtime.m has about 90 */
#define FIRST_MAX      5
#define NAME_BYTES     64
#define PACKAGES_SEEN  16

enum go_type_kind {
	TYPE_BOOL = 1,
	TYPE_INT = 2,
	TYPE_UINTPTR = 12,
	TYPE_INTERFACE = 20,
	TYPE_MAP = 21,
	TYPE_POINTER = 22,
	TYPE_SLICE = 23,
	TYPE_STRING = 24,
	TYPE_STRUCT = 25,
	TYPE_UNSAFE_POINTER = 26,
};

/* What a field must be: whatever reads it relies on that. */
enum go_kind {
	GO_KIND_BOOL,
	GO_KIND_INTEGER,    /* of 8 bytes */
	GO_KIND_FOUR_BYTES, /* an integer, or one in a struct (atomic.Uint32) */
	GO_KIND_INTERFACE,
	GO_KIND_MAP,
	GO_KIND_POINTER,
	GO_KIND_POINTER_STRUCT, /* a struct of the size of a pointer (atomic.Pointer) */
	GO_KIND_SLICE,
	GO_KIND_STRING,
	GO_KIND_STRUCT,
};

static const struct {
	enum go_struct in;
	const char *name;
	enum go_kind kind;
} fields[] = {
#define GO_FIELD_ROW(id, struct_id, field, kind_id) \
	[GO_FIELD_##id] = {GO_STRUCT_##struct_id, field, GO_KIND_##kind_id},
	GO_FIELDS(GO_FIELD_ROW)
#undef GO_FIELD_ROW
};
static_assert(ARRAY_SIZE(fields) == _GO_FIELD_MAX, "a field without a row");

/*
 * 'first': names of the first fields; 'or_first': those of other versions. Structs whose fields are all exported do not tell their
 * package; they are reached through a field that points to them ('via'). Where 'n_fields' is not 0,
 * the struct has exactly that many.
 */
static const struct {
	const char *name;
	const char *package;
	const char *first[FIRST_MAX], *or_first[FIRST_MAX];
	size_t n_fields;
	enum go_field via;
} structs[] = {
	[GO_STRUCT_G] = {.name = "runtime.g",
			 .package = "runtime",
			 .first = {"stack", "stackguard0", "stackguard1", "_panic"}},
	[GO_STRUCT_M] = {.name = "runtime.m", .package = "runtime", .first = {"g0", "morebuf"}},
	[GO_STRUCT_PERSIST_CONN] = {.name = "net/http.persistConn",
				    .package = "net/http",
				    .first = {"alt", "t", "cacheKey"}},
	[GO_STRUCT_TCP_CONN] = {.name = "net.TCPConn",
				.package = "net",
				.first = {"conn"},
				.n_fields = 1},
	[GO_STRUCT_NET_CONN] = {.name = "net.conn",
				.package = "net",
				.first = {"fd"},
				.n_fields = 1},
	[GO_STRUCT_NET_FD] = {.name = "net.netFD", .package = "net", .first = {"pfd", "family"}},
	[GO_STRUCT_POLL_FD] = {.name = "internal/poll.FD",
			       .package = "internal/poll",
			       .first = {"fdmu", "Sysfd"}},
	[GO_STRUCT_REQUEST] = {.name = "net/http.Request",
			       .package = "net/http",
			       .first = {"Method", "URL", "Proto", "ProtoMajor", "ProtoMinor"}},
	[GO_STRUCT_CLIENT_RESPONSE] = {.name = "net/http.Response",
				       .first = {"Status", "StatusCode", "Proto"},
				       .via = GO_FIELD_REQUEST_RESPONSE},
	[GO_STRUCT_RESPONSE] = {.name = "net/http.response",
				.package = "net/http",
				.first = {"conn", "req", "reqBody"}},
	[GO_STRUCT_CONN] = {.name = "net/http.conn",
			    .package = "net/http",
			    .first = {"server", "cancelCtx", "rwc"}},
	[GO_STRUCT_TRANSPORT_REQUEST] = {.name = "net/http.transportRequest",
					 .package = "net/http",
					 .first = {"Request", "extra"}},
	[GO_STRUCT_SERVER] = {.name = "net/http.Server",
			      .package = "net/http",
			      .first = {"Addr", "Handler"}},
	[GO_STRUCT_VALUE_CTX] = {.name = "context.valueCtx",
				 .package = "context",
				 .first = {"Context", "key", "val"},
				 .n_fields = 3},
	[GO_STRUCT_CANCEL_CTX] = {.name = "context.cancelCtx",
				  .package = "context",
				  .first = {"Context", "mu", "done"}},
	[GO_STRUCT_TIMER_CTX] = {.name = "context.timerCtx",
				 .package = "context",
				 .first = {"cancelCtx", "timer", "deadline"}},
	[GO_STRUCT_WITHOUT_CANCEL_CTX] = {.name = "context.withoutCancelCtx",
					  .package = "context",
					  .first = {"c"},
					  .n_fields = 1},
	[GO_STRUCT_WRITER] = {.name = "bufio.Writer",
			      .package = "bufio",
			      .first = {"err", "buf", "n", "wr"}},
	[GO_STRUCT_URL] = {.name = "net/url.URL",
			   .first = {"Scheme", "Opaque", "User", "Host", "Path"},
			   .via = GO_FIELD_REQUEST_URL},
	[GO_STRUCT_TLS_CONN] = {.name = "crypto/tls.Conn",
				.package = "crypto/tls",
				.first = {"conn", "isClient", "handshakeFn"}},
	[GO_STRUCT_PATTERN] = {.name = "net/http.pattern",
			       .package = "net/http",
			       .first = {"str", "method", "host", "segments"}},
	[GO_STRUCT_GIN_CONTEXT] = {.name = "github.com/gin-gonic/gin.Context",
				   .package = "github.com/gin-gonic/gin",
				   .first = {"writermem", "Request", "Writer", "Params"}},
	[GO_STRUCT_GIN_WRITER] = {.name = "github.com/gin-gonic/gin.responseWriter",
				  .package = "github.com/gin-gonic/gin",
				  .first = {"ResponseWriter", "size", "status"},
				  .n_fields = 3},
	[GO_STRUCT_ECHO_CONTEXT] = {.name = "github.com/labstack/echo/v4.context",
				    .package = "github.com/labstack/echo/v4",
				    .first = {"logger", "request", "response"},
				    .or_first = {"request", "response", "path"}},
	[GO_STRUCT_ECHO_RESPONSE] = {.name = "github.com/labstack/echo/v4.Response",
				     .package = "github.com/labstack/echo/v4",
				     .first = {"Writer", "echo", "beforeFuncs"},
				     .or_first = {"echo", "beforeFuncs", "afterFuncs", "Writer"}},
	[GO_STRUCT_ECHO_5_CONTEXT] = {.name = "github.com/labstack/echo/v5.Context",
				      .package = "github.com/labstack/echo/v5",
				      .first = {"request", "orgResponse", "response"}},
	[GO_STRUCT_ECHO_5_RESPONSE] = {.name = "github.com/labstack/echo/v5.Response",
				       .package = "github.com/labstack/echo/v5",
				       .first = {"ResponseWriter", "logger", "beforeFuncs"}},
	[GO_STRUCT_CHI_CONTEXT] = {.name = "github.com/go-chi/chi/v5.Context",
				   .package = "github.com/go-chi/chi/v5",
				   .first = {"Routes", "parentCtx", "RoutePath"},
				   .or_first = {"Routes", "RoutePath", "RouteMethod"}},
	[GO_STRUCT_GORILLA_ROUTE] = {.name = "github.com/gorilla/mux.Route",
				     .package = "github.com/gorilla/mux",
				     .first = {"handler", "buildOnly", "name", "err"}},
	[GO_STRUCT_GORILLA_CONF] = {.name = "github.com/gorilla/mux.routeConf",
				    .package = "github.com/gorilla/mux",
				    .first = {"useEncodedPath", "strictSlash", "skipClean"}},
	[GO_STRUCT_GORILLA_GROUP] = {.name = "github.com/gorilla/mux.routeRegexpGroup",
				     .package = "github.com/gorilla/mux",
				     .first = {"host", "path", "queries"},
				     .n_fields = 3},
	[GO_STRUCT_GORILLA_REGEXP] = {.name = "github.com/gorilla/mux.routeRegexp",
				      .package = "github.com/gorilla/mux",
				      .first = {"template", "regexpType"}},
};
static_assert(ARRAY_SIZE(structs) == _GO_STRUCT_MAX, "a struct without a row");

const char *go_struct_name(enum go_struct id)
{
	return structs[id].name;
}

const char *go_field_name(enum go_field field)
{
	return fields[field].name;
}

enum go_struct go_field_struct(enum go_field field)
{
	return fields[field].in;
}

/* A field as the type has it. */
struct field {
	char name[NAME_BYTES]; /* empty: none, or longer than what is looked for */
	uint64_t raw_offset;
	uint64_t type;
	uint64_t bytes;
	uint8_t alignment;
	uint8_t kind;
	uint32_t offset;
};

struct layout {
	uint64_t bytes; /* of the struct */
	size_t n;
	struct field fields[FIELDS_MAX];
};

struct package {
	uint64_t name;    /* address */
	uint64_t structs; /* bits: rows with that package */
};

struct reader {
	struct go_file *file;
	struct go_program *program;
	struct layout layout;
	struct package packages[PACKAGES_SEEN];
	size_t n_packages;
	bool is_known[_GO_STRUCT_MAX];
	bool is_contradicted[_GO_STRUCT_MAX];
	uint64_t field_types[_GO_FIELD_MAX];
	uint8_t chunk[GO_FILE_CHUNK_BYTES];
};

static_assert(_GO_STRUCT_MAX <= 64, "a bit for each struct");

/* A name, terminated; empty when it is longer than what is looked for. */
static int read_name(struct go_file *file, uint64_t address, char ret_name[NAME_BYTES])
{
	uint8_t head[2];
	int r;

	r = go_file_read_address(file, address, head, sizeof(head));
	if (r)
		return r;
	ret_name[0] = '\0';
	if (head[1] >= NAME_BYTES)
		return 0;
	r = go_file_read_address(file, address + 2, ret_name, head[1]);
	ret_name[r ? 0 : head[1]] = '\0';
	return r;
}

/* --- a layout */

static int read_field(struct go_file *file, uint64_t address, struct field *ret)
{
	uint8_t offset[8], type[TYPE_BYTES];
	uint64_t name;
	int r;

	r = go_file_read_pointer(file, address, &name);
	if (r == 0)
		r = read_name(file, name, ret->name);
	if (r == 0)
		r = go_file_read_pointer(file, address + 8, &ret->type);
	if (r == 0)
		r = go_file_read_address(file, address + 16, offset, sizeof(offset));
	if (r == 0)
		r = go_file_read_address(file, ret->type, type, sizeof(type));
	if (r)
		return r;
	ret->raw_offset = get_le64(offset);
	ret->bytes = get_le64(type);
	ret->alignment = type[22];
	ret->kind = type[23] & 31;
	return 0;
}

/* Do the offsets, stored in a way, follow from sizes and alignments? Then they are set. */
static bool compute_offsets(struct layout *l, unsigned int shift)
{
	uint64_t end = 0;

	for (size_t i = 0; i < l->n; i++) {
		struct field *f = &l->fields[i];
		uint64_t a = f->alignment;

		if (a == 0 || a > 64 || (a & (a - 1)) != 0 || f->bytes > l->bytes)
			return false;
		end = (end + a - 1) & ~(a - 1);
		if (f->raw_offset >> shift != end || end + f->bytes > l->bytes)
			return false;
		f->offset = (uint32_t)end;
		end += f->bytes;
	}
	/* What is left is padding, less than a word, or a word behind a last field of size 0. */
	return l->bytes - end <= 8;
}

/* The struct whose descriptor begins with 'head'; ELF_SHORT: not understood. */
static int read_layout(struct go_file *file, uint64_t address, const uint8_t head[STRUCT_BYTES],
		       struct layout *l)
{
	uint64_t at;
	int r;

	l->bytes = get_le64(head);
	l->n = get_le64(head + 64);
	if (l->n > FIELDS_MAX)
		return ELF_SHORT;
	r = go_file_relocate(file, address + 56, get_le64(head + 56), &at);
	for (size_t i = 0; i < l->n && r == 0; i++)
		r = read_field(file, at + i * FIELD_BYTES, &l->fields[i]);
	if (r)
		return r;
	return compute_offsets(l, 0) || compute_offsets(l, 1) ? 0 : ELF_SHORT;
}

static bool is_of_kind(const struct field *f, enum go_kind kind)
{
	switch (kind) {
	case GO_KIND_BOOL:
		return f->kind == TYPE_BOOL && f->bytes == 1;
	case GO_KIND_INTEGER:
		return f->kind >= TYPE_INT && f->kind <= TYPE_UINTPTR && f->bytes == 8;
	case GO_KIND_FOUR_BYTES:
		return f->bytes == 4;
	case GO_KIND_INTERFACE:
		return f->kind == TYPE_INTERFACE && f->bytes == 16;
	case GO_KIND_MAP:
		return f->kind == TYPE_MAP && f->bytes == 8;
	case GO_KIND_POINTER:
		return (f->kind == TYPE_POINTER || f->kind == TYPE_UNSAFE_POINTER) && f->bytes == 8;
	case GO_KIND_POINTER_STRUCT:
		return f->kind == TYPE_STRUCT && f->bytes == 8;
	case GO_KIND_SLICE:
		return f->kind == TYPE_SLICE && f->bytes == 24;
	case GO_KIND_STRING:
		return f->kind == TYPE_STRING && f->bytes == 16;
	case GO_KIND_STRUCT:
		return f->kind == TYPE_STRUCT;
	}
	return false;
}

static const struct field *find_field(const struct layout *l, const char *name)
{
	for (size_t i = 0; i < l->n; i++)
		if (strcmp(l->fields[i].name, name) == 0)
			return &l->fields[i];
	return NULL;
}

/* --- the structs that are looked for */

static bool has_first(const struct layout *l, const char *const first[FIRST_MAX])
{
	for (size_t i = 0; i < FIRST_MAX && first[i]; i++)
		if (i >= l->n || strcmp(l->fields[i].name, first[i]) != 0)
			return false;
	return first[0] != NULL;
}

static bool is_first_match(const struct layout *l, enum go_struct id)
{
	if (structs[id].n_fields != 0 && l->n != structs[id].n_fields)
		return false;
	return has_first(l, structs[id].first) || has_first(l, structs[id].or_first);
}

/* Could a struct be that whose first field has this name? */
static bool is_first_name(const char *name, enum go_struct id)
{
	return strcmp(structs[id].first[0], name) == 0 ||
	       (structs[id].or_first[0] && strcmp(structs[id].or_first[0], name) == 0);
}

static struct go_offset offset_in(const struct layout *l, enum go_field field)
{
	const struct field *f = find_field(l, fields[field].name);

	if (!f || !is_of_kind(f, fields[field].kind))
		return (struct go_offset){.source = GO_SOURCE_NONE};
	return (struct go_offset){.source = GO_SOURCE_TYPES, .bytes = f->offset};
}

/* Takes the layout for that of the struct, or sees that it contradicts one taken before. */
static void take_layout(struct reader *r, enum go_struct id, uint64_t address)
{
	struct go_program *program = r->program;

	for (size_t i = 0; i < _GO_FIELD_MAX; i++) {
		struct go_offset offset;
		const struct field *f;

		if (fields[i].in != id)
			continue;
		offset = offset_in(&r->layout, i);
		if (r->is_known[id] && (offset.source != program->offsets[i].source ||
					offset.bytes != program->offsets[i].bytes))
			r->is_contradicted[id] = true;
		program->offsets[i] = offset;
		f = find_field(&r->layout, fields[i].name);
		r->field_types[i] = f ? f->type : 0;
	}
	program->types[id] = r->is_known[id] ? 0 : address;
	program->layouts[id] = address;
	r->is_known[id] = true;
}

/* Bits of the structs in the package whose name is at an address. */
static int find_package(struct reader *r, uint64_t name, uint64_t *ret_structs)
{
	char text[NAME_BYTES];
	struct package *p;
	int e;

	for (size_t i = 0; i < MIN(r->n_packages, PACKAGES_SEEN); i++)
		if (r->packages[i].name == name) {
			*ret_structs = r->packages[i].structs;
			return 0;
		}
	e = read_name(r->file, name, text);
	if (e)
		return e;
	p = &r->packages[r->n_packages++ % PACKAGES_SEEN];
	*p = (struct package){.name = name};
	for (size_t i = 0; i < _GO_STRUCT_MAX; i++)
		if (structs[i].package && strcmp(structs[i].package, text) == 0)
			p->structs |= 1ULL << i;
	*ret_structs = p->structs;
	return 0;
}

/* Could a descriptor of a struct begin here? Asked for each word: the rarest first. */
static bool is_struct_head(const uint8_t head[STRUCT_BYTES])
{
	uint64_t n;

	if ((head[23] & 31) != TYPE_STRUCT || head[22] != 8 || head[21] != 8)
		return false;
	n = get_le64(head + 64);
	return n > 0 && n <= FIELDS_MAX && get_le64(head + 72) == n &&
	       get_le64(head) <= SIZE_MAX_BYTES;
}

/* 0, also when it is no struct of interest, or a negative errno. */
static int visit_struct(struct reader *r, uint64_t address, const uint8_t head[STRUCT_BYTES])
{
	uint64_t package, candidates = 0, at;
	char name[NAME_BYTES];
	int e;

	e = go_file_relocate(r->file, address + 48, get_le64(head + 48), &package);
	if (e == 0 && package != 0)
		e = find_package(r, package, &candidates);
	if (e || candidates == 0)
		return MIN(e, 0);

	/* The first name decides nearly always, and spares the reading of a layout. */
	e = go_file_relocate(r->file, address + 56, get_le64(head + 56), &at);
	if (e == 0)
		e = go_file_read_pointer(r->file, at, &at);
	if (e == 0)
		e = read_name(r->file, at, name);
	if (e)
		return MIN(e, 0);
	for (size_t i = 0; i < _GO_STRUCT_MAX; i++)
		if ((candidates >> i & 1) && !is_first_name(name, i))
			candidates &= ~(1ULL << i);
	if (candidates == 0)
		return 0;

	e = read_layout(r->file, address, head, &r->layout);
	if (e)
		return MIN(e, 0);
	for (size_t i = 0; i < _GO_STRUCT_MAX; i++)
		if ((candidates >> i & 1) && is_first_match(&r->layout, i))
			take_layout(r, i, address);
	return 0;
}

/* --- the search */

static int scan_range(struct reader *r, const struct elf_segment *s, uint64_t from, uint64_t to)
{
	uint64_t at = from + (-(s->address + from) & 7);

	for (; at < to; at += GO_FILE_CHUNK_BYTES - STRUCT_BYTES) {
		size_t n = MIN(GO_FILE_CHUNK_BYTES, to - at);
		int e = go_file_read_chunk(r->file, s->offset + at, r->chunk, n);

		if (e)
			return MIN(e, 0);
		/* What begins in the last STRUCT_BYTES is the next chunk's, if there is one. */
		for (size_t i = 0; i + STRUCT_BYTES < n + (at + n == to); i += 8) {
			if (!is_struct_head(r->chunk + i))
				continue;
			e = visit_struct(r, s->address + at + i, r->chunk + i);
			if (e < 0)
				return e;
		}
		if (at + n == to)
			break;
	}
	return 0;
}

/* A segment, but for the part of the file that holds no types. */
static int scan_segment(struct reader *r, const struct elf_segment *s, uint64_t skip,
			uint64_t skip_bytes)
{
	uint64_t from, to;
	int e;

	if (skip < s->offset || skip - s->offset >= s->size)
		return scan_range(r, s, 0, s->size);
	from = skip - s->offset;
	to = from + MIN(skip_bytes, s->size - from);
	e = scan_range(r, s, 0, from);
	return e ? e : scan_range(r, s, to, s->size);
}

/* Structs that another one has a pointer to. */
static int follow_pointers(struct reader *r)
{
	for (size_t i = 0; i < _GO_STRUCT_MAX; i++) {
		uint8_t head[STRUCT_BYTES];
		uint64_t address;
		int e;

		if (structs[i].package || r->is_contradicted[fields[structs[i].via].in] ||
		    r->program->offsets[structs[i].via].source != GO_SOURCE_TYPES)
			continue;
		/* That it is a pointer's type, its kind has said. */
		e = go_file_read_pointer(r->file, r->field_types[structs[i].via] + TYPE_BYTES,
					 &address);
		if (e == 0)
			e = go_file_read_address(r->file, address, head, sizeof(head));
		if (e == 0 && !is_struct_head(head))
			e = ELF_SHORT;
		if (e == 0)
			e = read_layout(r->file, address, head, &r->layout);
		if (e < 0)
			return e;
		if (e == 0 && is_first_match(&r->layout, i))
			take_layout(r, i, address);
	}
	return 0;
}

/*
 * Nothing is left of a struct that was found in two shapes; and of none when the search did not
 * come to its end, since there might have been another.
 */
static void drop_doubtful(struct reader *r)
{
	bool is_spent = go_file_is_spent(r->file);

	for (size_t i = 0; i < _GO_FIELD_MAX; i++)
		if (is_spent || r->is_contradicted[fields[i].in])
			r->program->offsets[i] = (struct go_offset){.source = GO_SOURCE_NONE};
	for (size_t i = 0; i < _GO_STRUCT_MAX; i++)
		if (is_spent || r->is_contradicted[i])
			r->program->types[i] = 0;
	if (r->program->types[GO_STRUCT_VALUE_CTX])
		r->program->context_interface = r->field_types[GO_FIELD_VALUE_CTX_CONTEXT];
}

int go_types_read(struct go_file *file, uint64_t skip, uint64_t skip_bytes,
		  struct go_program *program)
{
	_cleanup_(freep) struct reader *r = calloc(1, sizeof(*r));
	const struct elf_image *image = go_file_image(file);
	int e = 0;

	if (!r)
		return -ENOMEM;
	r->file = file;
	r->program = program;
	/* Types are among the code only where a linker has made no read-only segment. */
	for (unsigned int pass = 0; pass < 2 && !r->is_known[GO_STRUCT_G]; pass++)
		for (size_t i = 0; i < image->n_segments && e == 0; i++)
			if (image->segments[i].is_executable == (pass == 1))
				e = scan_segment(r, &image->segments[i], skip, skip_bytes);
	if (e)
		return e;
	e = follow_pointers(r);
	if (e)
		return e;
	drop_doubtful(r);
	return 0;
}

int go_types_check(struct go_file *file, const struct go_program *program)
{
	_cleanup_(freep) struct layout *l = malloc(sizeof(*l));

	if (!l)
		return -ENOMEM;
	for (size_t i = 0; i < _GO_STRUCT_MAX; i++) {
		uint8_t head[STRUCT_BYTES];
		int e;

		if (program->layouts[i] == 0)
			continue;
		e = go_file_read_address(file, program->layouts[i], head, sizeof(head));
		if (e == 0 && !is_struct_head(head))
			e = ELF_SHORT;
		if (e == 0)
			e = read_layout(file, program->layouts[i], head, l);
		if (e)
			return MIN(e, 0);
		for (size_t k = 0; k < _GO_FIELD_MAX; k++) {
			struct go_offset offset = {0};

			if (fields[k].in != i || program->offsets[k].source != GO_SOURCE_TYPES)
				continue;
			offset = offset_in(l, k);
			if (offset.source != GO_SOURCE_TYPES ||
			    offset.bytes != program->offsets[k].bytes)
				return 0;
		}
	}
	return 1;
}
