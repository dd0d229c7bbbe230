/* Names of event enums; see event.h. */
#include "model/event.h"

#include "base/util.h"

static const char *const reason_names[] = {
	[PARENT_UNDECIDED] = "undecided",
	[PARENT_HEADER] = "header",
	[PARENT_JOINED] = "joined",
	[PARENT_UNIT] = "unit",
	[PARENT_NONE_REMOTE] = "remote_client",
	[PARENT_NONE_NO_UNIT] = "no_unit",
	[PARENT_NONE_NO_REQUEST] = "no_open_request",
	[PARENT_NONE_AMBIGUOUS] = "ambiguous",
	[PARENT_NONE_TRUNCATED] = "truncated",
	[PARENT_NONE_LATE] = "late",
};
static_assert(ARRAY_SIZE(reason_names) == _PARENT_REASON_MAX, "each reason has a name");

const char *parent_reason_name(enum parent_reason reason)
{
	return reason_names[reason];
}
