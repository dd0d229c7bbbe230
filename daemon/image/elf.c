/* ELF headers; see elf.h. */
#include "image/elf.h"

#include <elf.h>
#include <errno.h>
#include <sys/stat.h>

#include "base/util.h"
#include "image/image.h"

#define NAME_MAX_BYTES 32 /* of a section name, with its terminator */

int elf_image_read(const struct elf_image *image, uint64_t offset, void *buffer, size_t n)
{
	char *to = buffer;

	if (offset > image->size || n > image->size - offset)
		return ELF_SHORT;
	while (n > 0) {
		ssize_t got = pread(image->fd, to, n, (off_t)offset);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return -errno;
		if (got == 0) /* truncated since fstat */
			return ELF_SHORT;
		to += got;
		offset += (uint64_t)got;
		n -= (size_t)got;
	}
	return 0;
}

const struct elf_segment *elf_image_segment_at(const struct elf_image *image, uint64_t address)
{
	for (size_t i = 0; i < image->n_segments; i++) {
		const struct elf_segment *s = &image->segments[i];

		if (address >= s->address && address - s->address < s->size)
			return s;
	}
	return NULL;
}

int elf_image_offset_of(const struct elf_image *image, uint64_t address, uint64_t n,
			uint64_t *ret_offset)
{
	const struct elf_segment *s = elf_image_segment_at(image, address);

	if (!s || n > s->size - (address - s->address))
		return ELF_SHORT;
	*ret_offset = s->offset + (address - s->address);
	return 0;
}

int elf_image_address_of(const struct elf_image *image, uint64_t offset, uint64_t *ret_address)
{
	for (size_t i = 0; i < image->n_segments; i++) {
		const struct elf_segment *s = &image->segments[i];

		if (offset < s->offset || offset - s->offset >= s->size)
			continue;
		*ret_address = s->address + (offset - s->offset);
		return 0;
	}
	return ELF_SHORT;
}

int elf_image_read_address(const struct elf_image *image, uint64_t address, void *buffer, size_t n)
{
	uint64_t offset;

	return elf_image_offset_of(image, address, n, &offset)
		       ? ELF_SHORT
		       : elf_image_read(image, offset, buffer, n);
}

/* A range of the file, cut at the file's end; size 0 when it lies beyond. */
static uint64_t size_within(const struct elf_image *image, uint64_t offset, uint64_t size)
{
	return offset >= image->size ? 0 : MIN(size, image->size - offset);
}

static int read_segments(struct elf_image *image, const Elf64_Ehdr *header)
{
	unsigned int n = MIN(header->e_phnum, 4 * ELF_SEGMENTS_MAX);
	int r;

	if (header->e_phentsize != sizeof(Elf64_Phdr) || header->e_phoff > image->size)
		return 0;
	for (unsigned int i = 0; i < n && image->n_segments < ELF_SEGMENTS_MAX; i++) {
		Elf64_Phdr p;
		uint64_t size;

		r = elf_image_read(image, header->e_phoff + i * sizeof(p), &p, sizeof(p));
		if (r)
			return r < 0 ? r : 0;
		if (p.p_type == PT_INTERP)
			image->has_interpreter = true;
		size = size_within(image, p.p_offset, p.p_filesz);
		if (p.p_type == PT_DYNAMIC)
			image->dynamic = (struct elf_section){.offset = p.p_offset, .size = size};
		if (p.p_type == PT_NOTE && image->n_notes < ELF_NOTES_MAX)
			image->notes[image->n_notes++] =
				(struct elf_section){.offset = p.p_offset, .size = size};
		if (p.p_type != PT_LOAD || size == 0)
			continue;
		image->segments[image->n_segments++] = (struct elf_segment){
			.offset = p.p_offset,
			.size = size,
			.address = p.p_vaddr,
			.is_writable = p.p_flags & PF_W,
			.is_executable = p.p_flags & PF_X,
		};
	}
	return 0;
}

static void note_sections(struct elf_image *image, const Elf64_Ehdr *header)
{
	if (header->e_shentsize != sizeof(Elf64_Shdr) || header->e_shnum == 0 ||
	    header->e_shstrndx >= header->e_shnum)
		return;
	if (header->e_shoff >= image->size ||
	    header->e_shnum * sizeof(Elf64_Shdr) > image->size - header->e_shoff)
		return;

	image->sections_offset = header->e_shoff;
	image->n_sections = MIN(header->e_shnum, ELF_SECTIONS_MAX);
	image->names_index = header->e_shstrndx;
}

int elf_image_open(int fd, struct elf_image *ret)
{
	struct elf_image image = {.fd = fd};
	Elf64_Ehdr header;
	struct stat st;
	int r;

	if (fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return IMAGE_NOT_REGULAR;
	image.size = (uint64_t)st.st_size;

	r = elf_image_read(&image, 0, header.e_ident, sizeof(header.e_ident));
	if (r)
		return r < 0 ? r : IMAGE_NOT_ELF;
	if (memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_ident[EI_DATA] != ELFDATA2LSB)
		return IMAGE_NOT_ELF;
	if (header.e_ident[EI_CLASS] == ELFCLASS32) {
		*ret = image;
		return 0;
	}
	if (header.e_ident[EI_CLASS] != ELFCLASS64)
		return IMAGE_NOT_ELF;

	r = elf_image_read(&image, 0, &header, sizeof(header));
	if (r)
		return r < 0 ? r : IMAGE_NOT_ELF;
	image.is_64bit = true;
	image.type = header.e_type;
	image.machine = header.e_machine;
	image.entry = header.e_entry;
	r = read_segments(&image, &header);
	if (r < 0)
		return r;
	note_sections(&image, &header);

	*ret = image;
	return 0;
}

static int read_section_header(const struct elf_image *image, unsigned int i, Elf64_Shdr *ret)
{
	return elf_image_read(image, image->sections_offset + i * sizeof(*ret), ret, sizeof(*ret));
}

/* The name of a section, terminated; empty when it cannot be had. */
static int read_name(const struct elf_image *image, const Elf64_Shdr *names, uint32_t at,
		     char ret_name[NAME_MAX_BYTES])
{
	uint64_t size = size_within(image, names->sh_offset, names->sh_size);
	size_t n;
	int r;

	ret_name[0] = '\0';
	if (at >= size)
		return 0;
	n = MIN(size - at, NAME_MAX_BYTES - 1);
	r = elf_image_read(image, names->sh_offset + at, ret_name, n);
	ret_name[r == 0 ? n : 0] = '\0';
	return r < 0 ? r : 0;
}

int elf_image_find_sections(const struct elf_image *image, const char *const names[], size_t n,
			    struct elf_section found[])
{
	Elf64_Shdr strings, section;
	char name[NAME_MAX_BYTES];
	int r;

	memset(found, 0, n * sizeof(found[0]));
	if (image->n_sections == 0)
		return 0;
	r = read_section_header(image, image->names_index, &strings);
	if (r || strings.sh_type != SHT_STRTAB)
		return r < 0 ? r : 0;

	for (unsigned int i = 0; i < image->n_sections; i++) {
		r = read_section_header(image, i, &section);
		if (r == 0)
			r = read_name(image, &strings, section.sh_name, name);
		if (r)
			return r < 0 ? r : 0;
		if (section.sh_type == SHT_NOBITS)
			continue;
		for (size_t k = 0; k < n; k++)
			if (found[k].size == 0 && strcmp(name, names[k]) == 0)
				found[k] = (struct elf_section){
					.offset = section.sh_offset,
					.size = size_within(image, section.sh_offset,
							    section.sh_size),
				};
	}
	return 0;
}
