/* The event loop and the wiring of the modules; see daemon.h. */
#include "daemon.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <sys/resource.h>
#include <systemd/sd-daemon.h>

#include "base/log.h"
#include "daemon_private.h"
#include "descriptors.h"
#include "export/json.h"
#include "export/tree.h"
#include "metrics/metrics.h"
#include "rights.h"

/*
 * While records come the ring is polled: waking a sleeper for each record was the dearest part of
 * all. After a tenth of a second without any, the reader sleeps until the kernel side wakes it.
 */
#define POLL_NS        (5 * NSEC_PER_MSEC)
#define POLLS_TO_SLEEP 20
#define TICK_NS        (200 * NSEC_PER_MSEC)
#define HINT_NS        (10 * NSEC_PER_SEC)
#define READER_NICE    -10
#define PRINT_BYTES    (1 << 20)
#define PRINT_MS       500
#define STOP_MS        3000 /* for all of the end; the next daemon sees requests within 5 s */
#define FLUSH_MS       1000 /* for sending what is left in any case */

/* The realtime clock may be stepped; read anew at every tick and whenever records are taken. */
static void update_clock(struct daemon *d)
{
	int64_t wall = (int64_t)now_ns(CLOCK_REALTIME),
		monotonic = (int64_t)now_ns(CLOCK_MONOTONIC);

	stitch_set_clock(d->stitch, wall - monotonic);
}

static int timer_in(sd_event_source *source, uint64_t delay_ns)
{
	int r = sd_event_source_set_time_relative(source, delay_ns / NSEC_PER_USEC);

	return r < 0 ? r : sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
}

/* --- events in, spans out */

/*
 * A child that was forked just now: the ring told of its fork before, and of its end it will later,
 * so who has the pid at this event is who it was.
 */
static void handle_event_of_child(struct daemon *d, const struct event *event)
{
	const struct process *p = discover_find(d->discover, event->pid);
	struct event own = *event;

	if (p && p->state == PROCESS_SELECTED)
		own.proc_id = p->proc_id;
	else
		probe_process_forget(d->probe, event->pid);
	stitch_event(d->stitch, &own);
}

static void handle_event(void *userdata, const struct event *event)
{
	struct daemon *d = userdata;

	/* The self-test of insertion, made while others are traced. */
	if (event->proc_id == INSERT_CHECK_PROC_ID)
		return;
	d->event_ns = event->time_ns;
	if (event->type == EVENT_PROCESS)
		discover_event(d->discover, event);
	else if (event->type == EVENT_HEAD && !event->proc_id)
		handle_event_of_child(d, event);
	else
		stitch_event(d->stitch, event);
}

static struct resource *find_resource(void *userdata, uint32_t proc_id, uint32_t pid)
{
	struct daemon *d = userdata;

	(void)pid;
	return discover_resource(d->discover, proc_id);
}

static void print_span(struct daemon *d, const struct span *span)
{
	json_write_span(output_begin(d->output), span);
	output_end(d->output);
}

static void handle_span(void *userdata, struct span *span)
{
	struct daemon *d = userdata;

	d->spans++;
	span->resource->spans++;
	if (d->options->print == DAEMON_PRINT_JSON)
		print_span(d, span);
	if (d->store && d->exporter)
		store_add(d->store, span_ref(span), now_ns(CLOCK_MONOTONIC));
	else if (d->store)
		store_add(d->store, TAKE_PTR(span), now_ns(CLOCK_MONOTONIC));
	if (d->exporter)
		exporter_push(d->exporter, TAKE_PTR(span));
	span_unref(span);
}

static void handle_revoke(void *userdata, uint64_t connection, uint32_t exchange)
{
	struct daemon *d = userdata;

	probe_request_revoke(d->probe, connection, exchange);
}

int daemon_select(void *userdata, const struct process *p)
{
	struct daemon *d = userdata;
	bool propagates = propagation_applies(d, p);
	struct go_facts go = {0};
	int64_t jvm_slot = 0;
	int r = 0;

	if (p->language == LANGUAGE_GO)
		r = go_units_add(d->go, p, &go);
	else if (p->language == LANGUAGE_JVM)
		r = jvm_agents_add(d->jvm, p, &jvm_slot);
	if (r < 0)
		return r;
	/*
	 * The threads of a Go process run many goroutines each: they are no units of work. JVMs and
	 * Go programs fork only to execute something else.
	 */
	r = probe_process_set(d->probe, &(struct probe_process){
						.pid = p->pid,
						.proc_id = p->proc_id,
						.has_thread_units = p->language != LANGUAGE_GO,
						.passes_on = p->language == LANGUAGE_OTHER,
						.propagates = propagates,
						.go_layout = go.layout,
						.go_bias = go.bias,
						.go_text = go.text,
						.go_text_bytes = go.text_bytes,
						.jvm_slot = jvm_slot,
					});
	if (r == 0)
		waiting_add(d->waiting, p->pid, p->proc_id, p->start_ns);
	/* Those that it makes from now on are taken in by the kernel side. */
	if (r == 0 && propagates)
		propagation_take_connections(d, p);
	return r;
}

static void look_at_jvm(void *userdata, uint32_t proc_id, bool *ret_listens, bool *ret_had_exchange)
{
	struct daemon *d = userdata;
	const struct process *p = discover_find_id(d->discover, proc_id);
	struct probe_seen seen;

	if (!p)
		return;
	probe_process_seen(d->probe, p->pid, &seen);
	*ret_listens = p->has_listening_port;
	*ret_had_exchange = seen.http1;
}

static void handle_agent(void *userdata, uint32_t proc_id)
{
	struct daemon *d = userdata;
	const struct process *p = discover_find_id(d->discover, proc_id);

	if (p && p->state == PROCESS_SELECTED)
		daemon_select(d, p);
}

static void handle_unselect(void *userdata, const struct process *p)
{
	struct daemon *d = userdata;

	/* In this order: what has been dropped is not taken in again. */
	probe_process_remove(d->probe, p->pid);
	propagation_drop_connections(d, p);
	go_units_remove(d->go, p->proc_id);
	jvm_agents_remove(d->jvm, p->proc_id);
	stitch_process_exit(d->stitch, p->proc_id, d->event_ns);
}

static void handle_judged(void *userdata, uint32_t pid)
{
	struct daemon *d = userdata;

	probe_process_judged(d->probe, pid);
}

/* Takes what is in the ring. Returns the number of records. */
static int drain(struct daemon *d)
{
	int n;

	update_clock(d);
	n = event_reader_drain(d->reader);
	if (n < 0) {
		errno = -n;
		log_ratelimited(LOG_LEVEL_WARNING, "Cannot read the ring, ignoring: %m");
	}
	if (d->output && !d->output_error)
		d->output_error = output_flush(d->output, 0);
	return n;
}

static int on_ring(sd_event_source *source, int fd, uint32_t revents, void *userdata)
{
	struct daemon *d = userdata;

	(void)source;
	(void)fd;
	(void)revents;
	drain(d);
	d->idle_polls = 0;
	return timer_in(d->poll_timer, POLL_NS);
}

static int on_poll(sd_event_source *source, uint64_t usec, void *userdata)
{
	struct daemon *d = userdata;

	(void)usec;
	if (drain(d) > 0)
		d->idle_polls = 0;
	else if (++d->idle_polls >= POLLS_TO_SLEEP) {
		/*
		 * What came between the last look and the announcement would wake nobody: look once
		 * more.
		 */
		probe_reader_sleeps(d->probe);
		drain(d);
		return 0;
	}
	return timer_in(source, POLL_NS);
}

/* --- the slow clock */

static void print_trace(const struct store_trace *trace, void *userdata)
{
	struct tree_options options = {
		.width = tree_terminal_width(STDOUT_FILENO),
		.colour = isatty(STDOUT_FILENO),
	};
	struct daemon *d = userdata;
	FILE *out = output_begin(d->output);

	tree_draw(out, trace->spans, trace->n_spans, &options);
	fputc('\n', out);
	output_end(d->output);
}

static void print_hints(struct daemon *d, uint64_t now)
{
	if (!d->hint_ns || now < d->hint_ns)
		return;
	if (d->spans == d->spans_at_hint)
		hints_print(d, stderr);
	d->spans_at_hint = d->spans;
	/* Again after a minute, if there is none still. */
	d->hint_ns = now + 6 * HINT_NS;
}

/* An exec that was not reported has taken its process out of the kernel side's table. */
static int select_again(const struct process *p, void *userdata)
{
	if (p->state == PROCESS_SELECTED)
		daemon_select(userdata, p);
	return 0;
}

/*
 * Process events that the ring had no room for: a pass over /proc finds what they would have said.
 */
static void repair_processes(struct daemon *d)
{
	uint64_t lost = probe_processes_lost(d->probe);
	int r;

	if (lost == d->processes_lost)
		return;
	d->processes_lost = lost;
	r = discover_scan(d->discover);
	if (r < 0) {
		errno = -r;
		log_ratelimited(LOG_LEVEL_WARNING, "Cannot look for processes again, ignoring: %m");
	}
	discover_walk(d->discover, select_again, d);
}

static int on_tick(sd_event_source *source, uint64_t usec, void *userdata)
{
	struct daemon *d = userdata;
	uint64_t now = now_ns(CLOCK_MONOTONIC);

	(void)usec;
	/* A record that was being written while the reader fell asleep has woken nobody. */
	drain(d);
	repair_processes(d);
	discover_tick(d->discover, now);
	stitch_tick(d->stitch, now);
	memory_give_back(&d->memory, stitch_bytes(d->stitch), now);
	waiting_tick(d->waiting, now);
	go_units_tick(d->go, now);
	jvm_agents_tick(d->jvm, now);
	propagation_tick(d, now);
	if (d->options->print == DAEMON_PRINT_TREE)
		store_tick(d->store, now, print_trace, d);
	print_hints(d, now);
	if (d->output && !d->output_error)
		d->output_error = output_flush(d->output, 0);
	if (d->output_error) {
		log_error_errno(d->output_error, "Cannot write to standard output, ending: %m");
		return sd_event_exit(d->event, EXIT_FAILURE);
	}
	return timer_in(source, TICK_NS);
}

/*
 * Discovery has its own times: a process is looked at 30 ms after its exec, not at the next tick.
 */
static int on_discover(sd_event_source *source, void *userdata)
{
	struct daemon *d = userdata;
	uint64_t now = now_ns(CLOCK_MONOTONIC), next = discover_next_ns(d->discover);

	(void)source;
	if (next <= now)
		discover_tick(d->discover, now);
	return 0;
}

/* --- start */

static int start_probe(struct daemon *d)
{
	static const int taps[] = {
		[CONFIG_TAP_AUTO] = -1,
		[CONFIG_TAP_FENTRY] = PROBE_TAP_FENTRY,
		[CONFIG_TAP_TRACEPOINT] = PROBE_TAP_TRACEPOINT,
		[CONFIG_TAP_KPROBE] = PROBE_TAP_KPROBE,
	};
	struct probe_options options = {
		.tap = taps[d->config->tap],
		.head_bytes_max = d->config->head_bytes_max,
		.processes_max = d->config->processes_max,
		.requests_max = d->config->requests_max,
		.connections_max = d->config->connections_max,
		.ring_bytes = d->config->ring_bytes,
	};
	struct probe_refusal refusals[_PROBE_TAP_MAX] = {0};
	int r = probe_new(&options, &d->probe, refusals);

	if (r < 0)
		return log_error_errno(r, "Cannot load the BPF programs: %m");
	switch (r) {
	case PROBE_NO_PERMISSION:
		log_error("Not permitted to load BPF programs: needs CAP_BPF, CAP_PERFMON and "
			  "CAP_NET_ADMIN "
			  "(or CAP_SYS_ADMIN) on the host, not in an unprivileged container");
		return -EPERM;
	case PROBE_NO_BTF:
		log_error("This kernel has no type information (/sys/kernel/btf/vmlinux): "
			  "CONFIG_DEBUG_INFO_BTF is needed");
		return -EOPNOTSUPP;
	case PROBE_LOCKDOWN:
		log_error("The kernel is locked down (confidentiality): BPF programs may not read "
			  "memory");
		return -EPERM;
	case PROBE_NO_TAP:
		for (int tap = 0; tap < _PROBE_TAP_MAX; tap++)
			if (refusals[tap].reason[0])
				log_error("Cannot use the %s tap: %s", probe_tap_name(tap),
					  refusals[tap].reason);
		return -EOPNOTSUPP;
	}
	return 0;
}

static int start_lock(struct daemon *d)
{
	pid_t holder;
	int r = lock_new(d->options->runtime_dir, &d->lock, &holder);

	if (r < 0)
		return log_error_errno(r, "Cannot lock '%s': %m", d->options->runtime_dir);
	if (r == LOCK_HELD) {
		log_error(
			"Another tsunagid (pid %d) runs in '%s'; --runtime-dir starts a second one",
			(int)holder, d->options->runtime_dir);
		return -EBUSY;
	}
	if (lock_has_removed_socket(d->lock))
		log_info("Removed the control socket of a daemon that had died");
	return 0;
}

static int start_export(struct daemon *d)
{
	const struct config *c = d->config;
	int r;

	if (c->endpoint) {
		r = exporter_new(&(struct exporter_options){.endpoint = c->endpoint,
							    .timeout_ms = c->export_timeout_ms,
							    .batch_spans = c->export_batch_spans,
							    .batch_delay_ms = c->export_batch_ms,
							    .queue_spans = c->export_queue_spans},
				 &d->exporter);
		if (r == EXPORTER_ENDPOINT_INVALID) {
			log_error("Cannot use the endpoint: not an http or https URL");
			return -EINVAL;
		}
		if (r < 0)
			return log_error_errno(r, "Cannot start the exporter: %m");
	}
	if (d->options->print != DAEMON_PRINT_NONE) {
		r = output_new(STDOUT_FILENO, PRINT_BYTES, &d->output);
		if (r < 0)
			return log_error_errno(r, "Cannot set up printing: %m");
	}
	if (c->endpoint && d->options->print != DAEMON_PRINT_TREE)
		return 0;
	r = store_new(
		&(struct store_options){.traces_max = c->store_traces, .bytes_max = c->store_bytes},
		&d->store);
	return r < 0 ? log_error_errno(r, "Cannot set up the trace store: %m") : 0;
}

static int start_modules(struct daemon *d)
{
	int r;

	r = stitch_new(&(struct stitch_options){.connections_max = d->config->connections_max,
						.bytes_max = d->config->open_bytes,
						.head_bytes_max = d->config->head_bytes_max,
						.exchange_idle_ns =
							d->config->exchange_idle_ms * NSEC_PER_MSEC,
						.resource = find_resource,
						.emit = handle_span,
						.revoke = handle_revoke,
						.userdata = d},
		       &d->stitch);
	if (r < 0)
		return log_error_errno(r, "Cannot set up stitching: %m");
	update_clock(d);
	r = discover_new(&(struct discover_options){.config = d->config,
						    .processes_max = d->config->processes_max,
						    .select = daemon_select,
						    .unselect = handle_unselect,
						    .judged = handle_judged,
						    .userdata = d,
						    .self_pid = (uint32_t)getpid()},
			 &d->discover);
	if (r < 0)
		return log_error_errno(r, "Cannot set up discovery: %m");
	r = waiting_new(d->probe, &d->waiting);
	if (r >= 0)
		r = go_units_new(d->probe, &d->go);
	if (r < 0)
		return log_error_errno(r, "Cannot set up what is probed on demand: %m");
	r = jvm_agents_new(&(struct jvm_agents_options){.look = look_at_jvm,
							.used = handle_agent,
							.userdata = d},
			   &d->jvm);
	if (r < 0)
		return log_error_errno(r, "Cannot set up JVMs: %m");
	r = event_reader_new(probe_ring_fd(d->probe), handle_event, d, &d->reader);
	if (r < 0)
		return log_error_errno(r, "Cannot read the ring: %m");
	return 0;
}

static int add_sources(struct daemon *d)
{
	int r;

	r = sd_event_add_io(d->event, NULL, event_reader_fd(d->reader), EPOLLIN, on_ring, d);
	if (r >= 0)
		r = sd_event_add_time_relative(d->event, &d->poll_timer, CLOCK_MONOTONIC,
					       POLL_NS / NSEC_PER_USEC, POLL_NS / NSEC_PER_USEC / 5,
					       on_poll, d);
	if (r >= 0)
		r = sd_event_add_time_relative(d->event, NULL, CLOCK_MONOTONIC,
					       TICK_NS / NSEC_PER_USEC,
					       TICK_NS / NSEC_PER_USEC / 10, on_tick, d);
	if (r >= 0)
		r = sd_event_add_post(d->event, NULL, on_discover, d);
	return r < 0 ? log_error_errno(r, "Cannot set up the event loop: %m") : 0;
}

/*
 * The ring is small and must be emptied in time, also on a machine that has no CPU to spare: it is
 * little work, and what does not fit is lost. Behind the exporter's start, whose thread keeps the
 * usual priority.
 */
static void raise_priority(void)
{
	if (setpriority(PRIO_PROCESS, 0, READER_NICE) < 0)
		log_debug("Cannot raise the reader's priority, ignoring: %m");
}

static int start_event_loop(struct daemon *d)
{
	sigset_t signals;
	int r;

	sigemptyset(&signals);
	sigaddset(&signals, SIGTERM);
	sigaddset(&signals, SIGINT);
	sigprocmask(SIG_BLOCK, &signals, NULL);
	signal(SIGPIPE, SIG_IGN);
	signal(SIGIO, SIG_IGN); /* of leases (probe/file_lease.h), which are looked at anyway */

	r = sd_event_new(&d->event);
	if (r >= 0)
		r = sd_event_add_signal(d->event, NULL, SIGTERM, NULL, NULL);
	if (r >= 0)
		r = sd_event_add_signal(d->event, NULL, SIGINT, NULL, NULL);
	return r < 0 ? log_error_errno(r, "Cannot set up the event loop: %m") : 0;
}

static int start_control(struct daemon *d)
{
	char path[4096];
	int r;

	snprintf(path, sizeof(path), "%s/" LOCK_SOCKET, d->options->runtime_dir);
	r = control_new(d->event, path, report_command, d, &d->control);
	return r < 0 ? log_error_errno(r, "Cannot listen on '%s': %m", path) : 0;
}

static int daemon_start(struct daemon *d)
{
	int r;

	/* Signals first: from here on an end is an orderly one, also in mid-load. */
	r = start_event_loop(d);
	if (r >= 0)
		r = start_lock(d);
	if (r >= 0)
		r = start_probe(d);
	if (r >= 0)
		propagation_start(d);
	if (r >= 0)
		r = start_export(d);
	if (r >= 0)
		r = start_modules(d);
	if (r >= 0)
		r = start_control(d);
	raise_priority();
	if (r >= 0)
		r = add_sources(d);
	if (r < 0)
		return r;

	/*
	 * Loading has gone through the kernel's type information, several megabytes that malloc
	 * would keep.
	 */
	memory_give_back(&d->memory, 0, now_ns(CLOCK_MONOTONIC));
	/*
	 * The kernel side reports new processes already: none falls between the pass and the
	 * events.
	 */
	r = discover_scan(d->discover);
	if (r < 0)
		return log_error_errno(r, "Cannot look for processes: %m");
	return 0;
}

/* Of the end's time what has not been spent on JVMs and printing. */
static void send_rest(struct daemon *d, uint64_t begin_ns)
{
	uint64_t spent_ms = (now_ns(CLOCK_MONOTONIC) - begin_ns) / NSEC_PER_MSEC;
	uint32_t left_ms = (uint32_t)(STOP_MS - MIN(spent_ms, STOP_MS - FLUSH_MS));

	if (d->exporter && exporter_stop(d->exporter, left_ms) == EXPORTER_UNSENT)
		log_warning("Cannot send %" PRIu64 " spans within %" PRIu32 " ms, dropping them",
			    metrics_get(METRIC_SPANS_SHUTDOWN), left_ms);
}

static void daemon_stop(struct daemon *d)
{
	uint64_t begin_ns = now_ns(CLOCK_MONOTONIC);

	propagation_stop(d);
	drain(d);
	/*
	 * While JVMs are told and spans are sent: it takes the kernel a while, and telling JVMs takes
	 * descriptors.
	 */
	go_units_detach(d->go);
	jvm_agents_stop(d->jvm);
	stitch_finish(d->stitch, now_ns(CLOCK_MONOTONIC));
	if (d->options->print == DAEMON_PRINT_TREE)
		store_tick(d->store, UINT64_MAX, print_trace, d);
	if (d->output && !d->output_error)
		output_flush(d->output, PRINT_MS);
	send_rest(d, begin_ns);
}

static void daemon_done(struct daemon *d)
{
	control_free(d->control);
	event_reader_free(d->reader);
	go_units_free(d->go);
	jvm_agents_free(d->jvm);
	propagation_free(d);
	waiting_free(d->waiting);
	probe_free(d->probe);
	discover_free(d->discover);
	stitch_free(d->stitch);
	exporter_free(d->exporter);
	store_free(d->store);
	output_free(d->output);
	sd_event_source_unref(d->poll_timer);
	sd_event_unref(d->event);
	lock_free(d->lock);
}

int daemon_run(const struct daemon_options *options)
{
	struct daemon d = {
		.options = options,
		.config = options->config,
		.start_ns = now_ns(CLOCK_MONOTONIC),
	};
	int r, status = 0;

	if (!rights_are_enough())
		return EXIT_FAILURE;
	memory_keep_large_apart();
	descriptors_raise(d.config->processes_max);
	r = daemon_start(&d);
	if (r >= 0) {
		rights_warn();
		if (options->print != DAEMON_PRINT_NONE)
			d.hint_ns = now_ns(CLOCK_MONOTONIC) + HINT_NS;
		log_info("Ready, %s tap, %" PRIu64 " processes traced, %s",
			 probe_tap_name(probe_tap_used(d.probe)),
			 metrics_get(METRIC_PROCESSES_SELECTED),
			 options->config->endpoint ? "exporting to a collector"
						   : "no collector: traces stay here");
		sd_notify(0, "READY=1");
		r = sd_event_loop(d.event);
		if (r < 0)
			log_error_errno(r, "Event loop failed: %m");
		status = r;
		sd_notify(0, "STOPPING=1");
		daemon_stop(&d);
		log_info("Stopped, %" PRIu64 " spans made", d.spans);
	}
	daemon_done(&d);
	return r < 0 || status ? EXIT_FAILURE : EXIT_SUCCESS;
}
