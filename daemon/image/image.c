/* The probe of an executable; see image.h. */
#include "image/image.h"

#include "image/elf.h"
#include "image/go.h"

int image_probe(int fd, struct image_facts *ret_facts)
{
	struct image_facts facts = {0};
	struct elf_image image;
	int r;

	r = elf_image_open(fd, &image);
	if (r)
		return r;

	facts.is_64bit = image.is_64bit;
	facts.is_dynamic = image.has_interpreter;
	/*
	 * 32-bit programs are left alone whatever is in them, so nothing below knows their layouts.
	 */
	if (image.is_64bit) {
		r = go_probe(&image, &facts);
		if (r < 0)
			return r;
	}

	*ret_facts = facts;
	return 0;
}
