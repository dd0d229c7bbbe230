/* The names of span attributes; see attribute.h. */
#include "model/attribute.h"

#define ATTRIBUTE_NAME(key, name, type) [key] = (name),
static const char *const names[] = {ATTRIBUTES(ATTRIBUTE_NAME)};

const char *attribute_key_name(enum attribute_key key)
{
	return names[key];
}
