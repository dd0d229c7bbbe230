/* The nearest known word; see nearest.h. */
#include "base/nearest.h"

#include <ctype.h>

#include "base/util.h"

#define WORD_MAX 63

static bool same_letter(struct str a, size_t i, struct str b, size_t j)
{
	return tolower((unsigned char)a.p[i]) == tolower((unsigned char)b.p[j]);
}

size_t nearest_distance(struct str a, struct str b)
{
	/*
	 * Row i says what it takes to make the first i letters of 'a' the first j of 'b'; two rows
	 * back for swaps.
	 */
	size_t rows[3][WORD_MAX + 1];
	size_t *older = rows[0], *old = rows[1], *row = rows[2];

	a.n = MIN(a.n, (size_t)WORD_MAX);
	b.n = MIN(b.n, (size_t)WORD_MAX);
	for (size_t j = 0; j <= b.n; j++)
		old[j] = j;

	for (size_t i = 1; i <= a.n; i++) {
		size_t *spare = older;

		row[0] = i;
		for (size_t j = 1; j <= b.n; j++) {
			size_t replaced = old[j - 1] + !same_letter(a, i - 1, b, j - 1);

			row[j] = MIN(replaced, MIN(old[j], row[j - 1]) + 1);
			if (i > 1 && j > 1 && same_letter(a, i - 1, b, j - 2) &&
			    same_letter(a, i - 2, b, j - 1))
				row[j] = MIN(row[j], older[j - 2] + 1);
		}
		older = old;
		old = row;
		row = spare;
	}
	return old[b.n];
}

const char *nearest_find(struct str word, const char *const *candidates, size_t n)
{
	const char *nearest = NULL;
	size_t least = SIZE_MAX;

	for (size_t i = 0; i < n; i++) {
		struct str candidate = str_from(candidates[i]);
		size_t distance = nearest_distance(word, candidate);

		if (distance < least && distance <= (MAX(word.n, candidate.n) + 1) / 2) {
			least = distance;
			nearest = candidates[i];
		}
	}
	return nearest;
}
