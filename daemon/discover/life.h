/*
 * The inside of a discover, and the life of its entries: looked at, traced, ended. Shared by
 * discover.c, events.c and scan.c, and known to nobody else.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "discover/discover.h"
#include "discover/entry.h"
#include "discover/host.h"
#include "discover/images.h"
#include "discover/look.h"
#include "discover/sockets.h"

struct discover {
	struct discover_options options;
	struct host host;
	struct image_cache *images;
	struct look_context context;
	struct entries entries;
	struct sockets *sockets; /* during a scan */
	bool uses_ports;         /* some selector has a port */
	uint32_t scan;           /* number of the last scan */
};

/* A whole look. Returns the entry that the pid has now, NULL when it has none any more. */
struct entry *life_look(struct discover *d, struct entry *e);

/*
 * Puts the entry where what is due next for it is due; 'done' is the last look that it needs no
 * more.
 */
void life_queue(struct discover *d, struct entry *e, enum queue_id done, uint64_t now_ns);

/* Tracing begins: the process has state PROCESS_SELECTED and a resource. */
void life_begin(struct discover *d, struct entry *e);

/*
 * Left alone after all. The reason is all that is kept; 'format' has one %s, for the text of the
 * error.
 */
void life_refuse(struct entry *e, const char *format, int error);

/* It has ended, or become something else. The entry is gone, or kept by its proc_id for a while. */
void life_end(struct discover *d, struct entry *e, uint64_t now_ns);
