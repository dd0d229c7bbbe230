/*
 * "Did you mean ...?": the known word nearest to a mistyped one. Used for configuration keys and
 * for command names; words are short.
 */
#pragma once

#include <stddef.h>

#include "base/str.h"

/*
 * Insertions, deletions, replacements and swaps of neighbours that make one word the other, case
 * ignored. Only the first 63 bytes of each are looked at.
 */
size_t nearest_distance(struct str a, struct str b);

/*
 * The candidate nearest to 'word', or NULL when more than half of its letters would have to change.
 */
const char *nearest_find(struct str word, const char *const *candidates, size_t n);
