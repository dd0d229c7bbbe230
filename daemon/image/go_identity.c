/*
 * Build ids and versions; see go_identity.h. Notes: ELF's gABI, "Note Section"; Go's has the name
 * "Go" and type 4 (cmd/internal/buildid), the GNU linker's "GNU" and type 3.
 */
#include "image/go_identity.h"

#include <elf.h>
#include <errno.h>

#include "base/table.h"

#define NOTES_MAX     16 /* of a segment */
#define NOTE_NAME_MAX 4
#define ID_BYTES_MAX  120
#define GNU_BYTES_MAX 64
#define GO_NOTE_TYPE  4

#define VERSIONS_SEEN_MAX 8

static uint64_t padded(uint32_t n)
{
	return ((uint64_t)n + 3) & ~3ULL;
}

/* The content of a note in one segment of notes: its length, 0 when there is none, or negative. */
static int find_note_in(struct go_file *file, const struct elf_section *notes, const char *name,
			uint32_t type, uint8_t *buffer, size_t max)
{
	uint64_t at = 0;

	for (unsigned int i = 0; i < NOTES_MAX && at + sizeof(Elf64_Nhdr) <= notes->size; i++) {
		char text[NOTE_NAME_MAX] = {0};
		uint64_t content, next;
		Elf64_Nhdr note;
		int r;

		r = go_file_read(file, notes->offset + at, &note, sizeof(note));
		if (r)
			return MIN(r, 0);
		content = at + sizeof(note) + padded(note.n_namesz);
		next = content + padded(note.n_descsz);
		r = go_file_read(file, notes->offset + at + sizeof(note), text,
				 MIN(note.n_namesz, sizeof(text)));
		if (r == 0 && note.n_type == type && note.n_namesz == sizeof(text) &&
		    memcmp(text, name, sizeof(text)) == 0 && note.n_descsz > 0 &&
		    note.n_descsz <= max && next <= notes->size) {
			r = go_file_read(file, notes->offset + content, buffer, note.n_descsz);
			if (r == 0)
				return (int)note.n_descsz;
		}
		if (r)
			return MIN(r, 0);
		at = next;
	}
	return 0;
}

static int find_note(struct go_file *file, const char *name, uint32_t type, uint8_t *buffer,
		     size_t max)
{
	const struct elf_image *image = go_file_image(file);
	int r = 0;

	for (size_t i = 0; i < image->n_notes && r == 0; i++)
		r = find_note_in(file, &image->notes[i], name, type, buffer, max);
	return r;
}

static bool is_text(const uint8_t *p, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (p[i] <= ' ' || p[i] > '~')
			return false;
	return true;
}

static void put_hex(char *to, const uint8_t *p, size_t n)
{
	static const char digits[] = "0123456789abcdef";

	for (size_t i = 0; i < n; i++) {
		*to++ = digits[p[i] >> 4];
		*to++ = digits[p[i] & 15];
	}
	*to = '\0';
}

/* ELF header, program headers as they were understood, and the size. */
static int hash_headers(struct go_file *file, char ret_build_id[GO_BUILD_ID_MAX])
{
	const struct elf_image *image = go_file_image(file);
	uint64_t words[3] = {image->size};
	uint8_t header[sizeof(Elf64_Ehdr)];
	int r;

	r = go_file_read(file, 0, header, sizeof(header));
	if (r)
		return MIN(r, 0);
	words[1] = table_hash(header, sizeof(header));
	for (size_t i = 0; i < image->n_segments; i++) {
		const struct elf_segment *s = &image->segments[i];
		const uint64_t segment[] = {words[2], s->offset, s->size, s->address};

		words[2] = table_hash(segment, sizeof(segment));
	}
	words[0] = table_hash(words, sizeof(words));
	memcpy(ret_build_id, "hash:", 5);
	put_hex(ret_build_id + 5, (const uint8_t *)words, 8);
	return 0;
}

int go_identity_read(struct go_file *file, char ret_build_id[GO_BUILD_ID_MAX])
{
	uint8_t id[ID_BYTES_MAX];
	int n;

	static_assert(3 + ID_BYTES_MAX < GO_BUILD_ID_MAX && 4 + 2 * GNU_BYTES_MAX < GO_BUILD_ID_MAX,
		      "room for the ids");
	n = find_note(file, "Go\0", GO_NOTE_TYPE, id, sizeof(id));
	if (n < 0)
		return n;
	if (n > 0 && is_text(id, (size_t)n)) {
		memcpy(ret_build_id, "go:", 3);
		memcpy(ret_build_id + 3, id, (size_t)n);
		ret_build_id[3 + n] = '\0';
		return 0;
	}
	n = find_note(file, "GNU", NT_GNU_BUILD_ID, id, GNU_BYTES_MAX);
	if (n < 0)
		return n;
	if (n > 0) {
		memcpy(ret_build_id, "gnu:", 4);
		put_hex(ret_build_id + 4, id, (size_t)n);
		return 0;
	}
	return hash_headers(file, ret_build_id);
}

/* --- the version */

struct versions {
	size_t n;
	char texts[VERSIONS_SEEN_MAX][IMAGE_VERSION_MAX];
};

static bool is_digit(uint8_t c)
{
	return c >= '0' && c <= '9';
}

/*
 * "go1.26.5" at 'p' ('n' bytes), with a patch number: names of language versions, which are many,
 * have none. The length, or 0.
 */
static size_t version_length(const uint8_t *p, size_t n)
{
	size_t at = 4, minor, patch;

	for (minor = at; at < n && is_digit(p[at]) && at - minor < 3;)
		at++;
	if (at == minor || at + 1 >= n || p[at] != '.')
		return 0;
	for (patch = ++at; at < n && is_digit(p[at]) && at - patch < 3;)
		at++;
	return at == patch ? 0 : at;
}

static void take_version(struct versions *vs, const uint8_t *p, size_t n)
{
	for (size_t i = 0; i < vs->n; i++)
		if (strlen(vs->texts[i]) == n && memcmp(vs->texts[i], p, n) == 0)
			return;
	if (vs->n == VERSIONS_SEEN_MAX)
		return;
	memcpy(vs->texts[vs->n], p, n);
	vs->texts[vs->n++][n] = '\0';
}

static int scan_versions(struct go_file *file, const struct elf_segment *s, uint8_t *chunk,
			 struct versions *vs)
{
	for (uint64_t at = 0; at < s->size; at += GO_FILE_CHUNK_BYTES - IMAGE_VERSION_MAX) {
		size_t n = MIN(GO_FILE_CHUNK_BYTES, s->size - at);
		const uint8_t *p = chunk;
		int r = go_file_read_chunk(file, s->offset + at, chunk, n);

		if (r)
			return MIN(r, 0);
		while ((p = memmem(p, n - (size_t)(p - chunk), "go1.", 4))) {
			size_t left = n - (size_t)(p - chunk), length;

			length = version_length(p, MIN(left, IMAGE_VERSION_MAX - 1));
			if (length > 0)
				take_version(vs, p, length);
			p += 4;
		}
	}
	return 0;
}

int go_identity_find_version(struct go_file *file, char ret_version[IMAGE_VERSION_MAX])
{
	_cleanup_(freep) uint8_t *chunk = malloc(GO_FILE_CHUNK_BYTES);
	const struct elf_image *image = go_file_image(file);
	struct versions vs = {0};

	if (!chunk)
		return -ENOMEM;
	for (size_t i = 0; i < image->n_segments; i++) {
		int r = image->segments[i].is_executable
				? 0
				: scan_versions(file, &image->segments[i], chunk, &vs);

		if (r)
			return r;
	}
	if (vs.n == 1)
		memcpy(ret_version, vs.texts[0], IMAGE_VERSION_MAX);
	return 0;
}
