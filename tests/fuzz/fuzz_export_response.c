/* Any answer of a collector: two bytes of HTTP status, then the body. */
#include <stdlib.h>

#include "export/response.h"
#include "export/utf8.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct response r;
	struct str message;

	if (size < 2)
		return 0;
	response_judge(data[0] << 8 | data[1],
		       (struct str){.p = (const char *)data + 2, .n = size - 2}, 512, &r);
	message = str_from(r.message);
	if (r.rejected_spans > 512 || message.n >= sizeof(r.message) ||
	    utf8_valid_bytes(message) != message.n)
		abort();
	for (size_t i = 0; i < message.n; i++)
		if ((unsigned char)message.p[i] < 0x20)
			abort();
	return 0;
}
