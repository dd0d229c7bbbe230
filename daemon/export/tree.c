/* The picture of a trace; see tree.h. */
#include "export/tree.h"

#include <errno.h>
#include <inttypes.h>
#include <sys/ioctl.h>

#include "export/forest.h"
#include "export/pen.h"

#define WIDTH_DEFAULT     100
#define WIDTH_MIN         60
#define WIDTH_MAX         400
#define LINES_MAX_DEFAULT 500

/* Columns: the label, then ' ' status ' ' duration, then two blanks and the bar. */
#define STATUS_WIDTH   3
#define DURATION_WIDTH 8
#define FIXED_WIDTH    (1 + STATUS_WIDTH + 1 + DURATION_WIDTH + 2)
#define LABEL_MAX      76
#define INDENT         3

/* What is the same for all lines of a trace. */
struct tree {
	struct span *const *spans;
	struct forest forest;
	struct pen pen;
	unsigned int width;
	unsigned int label_width;
	unsigned int lines_max;
	uint64_t start_ns, end_ns;
	const char **services; /* in the order of their first line */
	size_t n_services;
};

static void tree_done(struct tree *t)
{
	forest_done(&t->forest);
	free(t->services);
}

unsigned int tree_terminal_width(int fd)
{
	const char *columns = getenv("COLUMNS");
	struct winsize size;
	unsigned long n;

	if (ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col)
		return size.ws_col;
	n = columns ? strtoul(columns, NULL, 10) : 0;
	return n && n <= WIDTH_MAX ? (unsigned int)n : WIDTH_DEFAULT;
}

static const char *span_service(const struct span *s)
{
	return s->resource ? s->resource->service_name : "";
}

static size_t service_index(const struct tree *t, const char *service)
{
	size_t i = 0;

	while (i < t->n_services && strcmp(t->services[i], service) != 0)
		i++;
	return i;
}

/* Services one after the other get different colours, the same in bar and name. */
static const char *service_style(const struct tree *t, const char *service)
{
	static const char *const styles[] = {"36", "33", "35", "32", "34", "96", "93", "95"};

	return styles[service_index(t, service) % ARRAY_SIZE(styles)];
}

static int services_collect(struct tree *t)
{
	t->services = malloc((t->forest.n + 1) * sizeof(*t->services));
	if (!t->services)
		return -ENOMEM;
	for (uint32_t i = t->forest.first_top; i != FOREST_NONE; i = forest_next(&t->forest, i)) {
		const char *service = span_service(t->spans[i]);

		if (service_index(t, service) == t->n_services)
			t->services[t->n_services++] = service;
	}
	return 0;
}

/* "912 us", "41.2 ms", "1.53 s", "2m 03s": at most DURATION_WIDTH columns. */
static void duration_format(uint64_t ns, char *out, size_t n)
{
	uint64_t seconds = ns / NSEC_PER_SEC;

	if (ns < 999500)
		snprintf(out, n, "%.*f µs", ns < 99950 ? 1 : 0, (double)ns / 1e3);
	else if (ns < 999500000)
		snprintf(out, n, "%.*f ms",
			 ns < 9995000    ? 2
			 : ns < 99950000 ? 1
					 : 0,
			 (double)ns / 1e6);
	else if (seconds < 60)
		snprintf(out, n, "%.2f s", (double)ns / 1e9);
	else if (seconds < 100 * 60)
		snprintf(out, n, "%" PRIu64 "m %02" PRIu64 "s", seconds / 60, seconds % 60);
	else if (seconds < 100 * 3600)
		snprintf(out, n, "%" PRIu64 "h %02" PRIu64 "m", seconds / 3600, seconds / 60 % 60);
	else
		snprintf(out, n, "> 99 h");
}

static void start_format(uint64_t unix_ns, char *out, size_t n)
{
	time_t seconds = (time_t)(unix_ns / NSEC_PER_SEC);
	char text[32] = "";
	struct tm tm;

	if (localtime_r(&seconds, &tm))
		strftime(text, sizeof(text), "%H:%M:%S", &tm);
	snprintf(out, n, "%s.%03u", text, (unsigned int)(unix_ns % NSEC_PER_SEC / NSEC_PER_MSEC));
}

static const char *plural(size_t n)
{
	return n == 1 ? "" : "s";
}

static void headline_draw(struct tree *t)
{
	const struct span *first = t->spans[t->forest.first_top];
	char id[TRACE_ID_HEX + 1], start[64], duration[32];
	struct pen *p = &t->pen;

	ids_to_hex(first->trace_id.b, sizeof(first->trace_id.b), id);
	start_format(t->start_ns, start, sizeof(start));
	duration_format(t->end_ns - t->start_ns, duration, sizeof(duration));

	p->limit = t->width;
	pen_text(p, PEN_BOLD, str_from(id));
	pen_format(p, NULL, "  %s  %s  %zu span%s  %zu service%s", start, duration, t->forest.n,
		   plural(t->forest.n), t->n_services, plural(t->n_services));
	if (forest_is_orphan(&t->forest, t->spans, t->forest.first_top))
		pen_text(p, PEN_DIM, STR("  parent elsewhere"));
	pen_newline(p);
}

static unsigned int depth_of(const struct tree *t, uint32_t at)
{
	unsigned int depth = 0;

	while ((at = t->forest.nodes[at].parent) != FOREST_NONE)
		depth++;
	return depth;
}

/*
 * Lines from the ancestors, at most half of the label. Of a deeper span only the nearest levels are
 * drawn, behind the number of those left out.
 */
static void branches_draw(struct tree *t, uint32_t at)
{
	unsigned int depth = depth_of(t, at), levels_max = t->label_width / 2 / INDENT,
		     levels = depth;
	const char *pieces[WIDTH_MAX / INDENT];

	if (depth > levels_max) {
		levels = levels_max - 2;
		pen_format(&t->pen, PEN_DIM, "%-5u ", depth - levels);
	}
	for (unsigned int i = levels; i-- > 0; at = t->forest.nodes[at].parent) {
		bool is_last = t->forest.nodes[at].next_sibling == FOREST_NONE;

		if (i + 1 == levels)
			pieces[i] = is_last ? "└─ " : "├─ ";
		else
			pieces[i] = is_last ? "   " : "│  ";
	}
	for (unsigned int i = 0; i < levels; i++)
		pen_text(&t->pen, PEN_DIM, str_from(pieces[i]));
}

static struct str attribute_text(const struct span *s, enum attribute_key key)
{
	const struct attribute *a = span_get(s, key);

	return a ? a->s : STR_NONE;
}

/* Of "scheme://host/path?query" all that is behind "://". */
static struct str url_without_scheme(struct str url)
{
	ptrdiff_t colon = str_find(url, ':');

	if (colon < 0 || !str_starts_with(str_skip(url, (size_t)colon), STR("://")))
		return url;
	return str_skip(url, (size_t)colon + 3);
}

/*
 * The host of a client's URL is worth its room only where no server span below says who answered.
 */
static void target_draw(struct tree *t, uint32_t at)
{
	const struct span *s = t->spans[at];
	struct str path = attribute_text(s, ATTR_URL_PATH),
		   query = attribute_text(s, ATTR_URL_QUERY);
	struct str url = url_without_scheme(attribute_text(s, ATTR_URL_FULL));
	ptrdiff_t slash = str_find(url, '/');

	if (url.n && t->forest.nodes[at].first_child != FOREST_NONE && slash >= 0)
		url = str_skip(url, (size_t)slash);
	if (!url.n && path.n && str_find(s->name, '/') >= 0)
		return; /* the name has a route */

	if (url.n || path.n)
		pen_text(&t->pen, NULL, STR(" "));
	pen_text(&t->pen, NULL, url.n ? url : path);
	if (url.n || !query.n)
		return;
	pen_text(&t->pen, PEN_DIM, STR("?"));
	pen_text(&t->pen, PEN_DIM, query);
}

static const char *kind_name(enum span_kind kind)
{
	switch (kind) {
	case SPAN_KIND_SERVER:
		return " server ";
	case SPAN_KIND_CLIENT:
		return " client ";
	case SPAN_KIND_INTERNAL:
		return " internal ";
	}
	return " ";
}

static void label_draw(struct tree *t, uint32_t at)
{
	const struct span *s = t->spans[at];
	struct str error = attribute_text(s, ATTR_ERROR_TYPE);
	const char *service = span_service(s);

	t->pen.limit = t->label_width;
	branches_draw(t, at);
	pen_text(&t->pen, service_style(t, service), str_from(service));
	pen_text(&t->pen, PEN_DIM, str_from(kind_name(s->kind)));
	pen_text(&t->pen, NULL, s->name);
	/* With a status code error.type only repeats it. */
	if (error.n && !span_get(s, ATTR_HTTP_RESPONSE_STATUS_CODE)) {
		pen_text(&t->pen, NULL, STR(" "));
		pen_text(&t->pen, PEN_RED, error);
	}
	target_draw(t, at);
}

static void status_draw(struct tree *t, const struct span *s)
{
	const struct attribute *code = span_get(s, ATTR_HTTP_RESPONSE_STATUS_CODE);
	const char *style = s->status == SPAN_STATUS_ERROR ? PEN_RED : NULL;

	t->pen.limit = t->pen.column + STATUS_WIDTH;
	if (code)
		pen_format(&t->pen, style, "%3" PRId64, code->i);
	else
		pen_text(&t->pen, style, s->status == SPAN_STATUS_ERROR ? STR("err") : STR("  -"));
}

static void duration_draw(struct tree *t, const struct span *s)
{
	unsigned int end = t->pen.column + DURATION_WIDTH;
	char text[32];

	duration_format(s->end_unix_ns - s->start_unix_ns, text, sizeof(text));
	t->pen.limit = end;
	pen_move(&t->pen, end - MIN(pen_columns(str_from(text)), (unsigned int)DURATION_WIDTH));
	pen_text(&t->pen, NULL, str_from(text));
}

/* Where a time lies on a bar of 'halves' half columns. */
static unsigned int bar_position(const struct tree *t, uint64_t time_ns, unsigned int halves)
{
	uint64_t total = t->end_ns - t->start_ns;

	if (!total)
		return time_ns > t->start_ns ? halves : 0;
	return (unsigned int)((double)(time_ns - t->start_ns) / (double)total * halves + 0.5);
}

/* Drawn to half a column; no span is shorter than that. */
static void bar_draw(struct tree *t, const struct span *s)
{
	static const char *const heavy[] = {" ", "╺", "╸", "━"}, *const light[] = {" ", "╶", "╴",
										   "─"};
	const char *const *glyphs = s->kind == SPAN_KIND_CLIENT ? light : heavy;
	unsigned int halves = 2 * (t->width - t->pen.column);
	unsigned int from = bar_position(t, s->start_unix_ns, halves);
	unsigned int to = bar_position(t, s->end_unix_ns, halves);
	char bar[3 * WIDTH_MAX + 1];
	size_t n = 0;

	from = MIN(from, halves - 1);
	to = MAX(to, from + 1);
	pen_move(&t->pen, t->pen.column + from / 2);
	for (unsigned int at = from & ~1u; at < to; at += 2) {
		bool has_left = at >= from, has_right = at + 1 < to;
		const char *glyph = glyphs[has_left * 2 + has_right];

		memcpy(bar + n, glyph, strlen(glyph));
		n += strlen(glyph);
	}
	t->pen.limit = t->width;
	pen_text(&t->pen, service_style(t, span_service(s)), (struct str){.p = bar, .n = n});
}

static void line_draw(struct tree *t, uint32_t at)
{
	const struct span *s = t->spans[at];

	label_draw(t, at);
	pen_move(&t->pen, t->label_width + 1);
	status_draw(t, s);
	pen_move(&t->pen, t->label_width + 1 + STATUS_WIDTH + 1);
	duration_draw(t, s);
	pen_move(&t->pen, t->label_width + FIXED_WIDTH);
	bar_draw(t, s);
	pen_newline(&t->pen);
}

static void lines_draw(struct tree *t)
{
	uint32_t at = t->forest.first_top;
	size_t drawn = 0;

	for (; at != FOREST_NONE && drawn < t->lines_max; drawn++) {
		line_draw(t, at);
		at = forest_next(&t->forest, at);
	}
	if (drawn == t->forest.n)
		return;
	t->pen.limit = t->width;
	pen_format(&t->pen, PEN_DIM, "… %zu more", t->forest.n - drawn);
	pen_newline(&t->pen);
}

static void layout_set(struct tree *t, const struct tree_options *options)
{
	unsigned int width =
		options->width ? options->width : tree_terminal_width(fileno(t->pen.out));

	t->width = MIN(MAX(width, (unsigned int)WIDTH_MIN), (unsigned int)WIDTH_MAX);
	t->label_width = MIN(t->width - FIXED_WIDTH - t->width / 3, (unsigned int)LABEL_MAX);
	t->lines_max = options->lines_max ? options->lines_max : LINES_MAX_DEFAULT;

	t->start_ns = UINT64_MAX;
	for (size_t i = 0; i < t->forest.n; i++) {
		t->start_ns = MIN(t->start_ns, t->spans[i]->start_unix_ns);
		t->end_ns = MAX(t->end_ns, t->spans[i]->end_unix_ns);
	}
}

int tree_draw(FILE *out, struct span *const *spans, size_t n, const struct tree_options *options)
{
	_cleanup_(tree_done) struct tree t = {
		.spans = spans,
		.pen = {.out = out, .colour = options->colour},
	};
	int r;

	if (!n)
		return 0;
	r = forest_build(spans, n, &t.forest);
	if (r < 0)
		return r;
	r = services_collect(&t);
	if (r < 0)
		return r;

	layout_set(&t, options);
	headline_draw(&t);
	lines_draw(&t);
	return ferror(out) ? -EIO : 0;
}
