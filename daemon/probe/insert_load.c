/* Insertion's object, on its way into the kernel; see insert_load.h. */
#include "probe/insert_load.h"

#include <errno.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <sys/resource.h>

#include "abi.h"
#include "base/thread.h"
#include "probe/tap.h"
#include "skeleton/inserter.skel.h"

struct insert_load {
	struct inserter *skeleton; /* NULL: it was given away */
	int done;                  /* an eventfd */
	unsigned int users;        /* whoever asked for it, and the thread */
	/* The thread's, until it says that it is done: */
	int result;
	struct probe_refusal refusal;
};

const char *insert_load_refusal(const struct probe *p)
{
	return probe_keeps_with_socket(p)
		       ? NULL
		       : "the tap in use cannot keep what it knows with the socket";
}

static void load_unref(struct insert_load *l)
{
	if (__atomic_sub_fetch(&l->users, 1, __ATOMIC_ACQ_REL))
		return;
	inserter__destroy(l->skeleton);
	closep(&l->done);
	free(l);
}

void insert_load_free(struct insert_load *l)
{
	if (l)
		load_unref(l);
}

static void *load_main(void *userdata)
{
	struct insert_load *l = userdata;

	/* The usual priority, whatever the reader's is. */
	setpriority(PRIO_PROCESS, 0, 0);
	probe_warning_forget();
	l->result = inserter__load(l->skeleton);
	if (l->result)
		snprintf(l->refusal.reason, sizeof(l->refusal.reason), "%s",
			 probe_warning() ?: strerror(-l->result));
	eventfd_write(l->done, 1);
	load_unref(l);
	return NULL;
}

static int open_object(struct insert_load *l, struct probe *p, const struct insert_options *o)
{
	struct inserter *s = inserter__open();
	int r;

	if (!s)
		return -errno;
	l->skeleton = s;
	s->rodata->head_bytes_max = o->head_bytes_max;
	s->rodata->insert_faults = (o->line_fails ? INSERT_FAULT_LINE : 0) |
				   (o->take_out_fails ? INSERT_FAULT_TAKE_OUT : 0);
	bpf_map__set_max_entries(s->maps.sockets, o->connections_max);
	r = probe_share_maps(p, s->obj);
	if (!r)
		r = probe_share_variables(p, s->obj);
	if (!r && o->before_load)
		o->before_load(s->obj);
	return r;
}

static int start_thread(struct insert_load *l)
{
	pthread_t thread;
	int r;

	l->users++;
	r = thread_start(&thread, "tsunagi-load", load_main, l);
	if (r < 0) {
		l->users--;
		return r;
	}
	pthread_detach(thread);
	return 0;
}

int insert_load_new(struct probe *p, const struct insert_options *options, struct insert_load **ret)
{
	_cleanup_(insert_load_freep) struct insert_load *l = calloc(1, sizeof(*l));
	int r;

	if (!l)
		return -ENOMEM;
	l->users = 1;
	l->done = eventfd(0, EFD_CLOEXEC);
	if (l->done < 0)
		return -errno;
	r = open_object(l, p, options);
	if (!r)
		r = start_thread(l);
	if (r < 0)
		return r;
	*ret = TAKE_PTR(l);
	return 0;
}

int insert_load_fd(const struct insert_load *l)
{
	return l->done;
}

int insert_load_take(struct insert_load *l, struct inserter **ret,
		     struct probe_refusal *ret_refusal)
{
	eventfd_t n;

	/* Also for what the thread wrote before it said so. */
	if (eventfd_read(l->done, &n) < 0)
		return -errno;
	if (l->result == -ENOMEM)
		return l->result;
	if (l->result) {
		*ret_refusal = l->refusal;
		return INSERT_LOAD_REFUSED;
	}
	*ret = TAKE_PTR(l->skeleton);
	return 0;
}
