/*
 * Counters: every loss, truncation, eviction, refusal and absence has one, by a name a person can
 * look up (docs/operating.md explains each). Counters only grow. Any thread may add.
 *
 * The rows are METRICS(X): X(identifier, "name", "help"). Kernel-side counters have a table of
 * their own in bpf/abi.h and are read by probe/; the status command shows both.
 */
#pragma once

#include <stdint.h>

#define METRICS(X)                                                                                 \
	X(METRIC_SPANS_SERVER, "spans_server", "server spans made")                                \
	X(METRIC_SPANS_CLIENT, "spans_client", "client spans made")                                \
	X(METRIC_SPANS_NO_MEMORY, "spans_no_memory", "spans lost: no memory")                      \
	X(METRIC_SPANS_NO_PROCESS, "spans_no_process", "spans lost: their process was not known")  \
	X(METRIC_EXCHANGES_RESET, "exchanges_reset", "exchanges ended by a reset")                 \
	X(METRIC_EXCHANGES_PROCESS_EXIT, "exchanges_process_exit",                                 \
	  "exchanges ended by the end of their process")                                           \
	X(METRIC_EXCHANGES_NOT_OBSERVED, "exchanges_not_observed",                                 \
	  "exchanges whose response was not seen")                                                 \
	X(METRIC_EXCHANGES_IDLE, "exchanges_idle", "exchanges given up after http.exchange_idle")  \
	X(METRIC_EXCHANGES_NO_RESPONSE_END, "exchanges_no_response_end",                           \
	  "exchanges whose response was seen but not its end")                                     \
	X(METRIC_RESPONSES_ORPHAN, "responses_orphan",                                             \
	  "responses whose request was not seen (older than the daemon, or lost)")                 \
	X(METRIC_HEADS_BAD, "heads_bad", "heads that are not HTTP/1: no span made")                \
	X(METRIC_HEADS_TRUNCATED, "heads_truncated", "heads longer than http.head_bytes_max")      \
	X(METRIC_HEADS_PARTIAL, "heads_partial", "heads of which a part was lost")                 \
	X(METRIC_CONNECTIONS_FULL, "connections_full",                                             \
	  "connections not followed: the table was full")                                          \
	X(METRIC_PIPELINE_FULL, "pipeline_full",                                                   \
	  "requests not followed: too many open on their connection")                              \
	X(METRIC_RECORDS_BAD, "records_bad",                                                       \
	  "records from the kernel side that failed validation")                                   \
	X(METRIC_CONTEXTS_REVOKED, "contexts_revoked", "contexts taken back by user space")        \
	X(METRIC_QUEUE_FULL, "queue_full", "spans dropped: the export queue was full")             \
	X(METRIC_SPANS_EXPORTED, "spans_exported", "spans accepted by the collector")              \
	X(METRIC_SPANS_REFUSED, "spans_refused", "spans refused by the collector")                 \
	X(METRIC_SPANS_UNREACHABLE, "spans_unreachable",                                           \
	  "spans lost: the collector did not answer")                                              \
	X(METRIC_SPANS_SHUTDOWN, "spans_shutdown", "spans lost: not sent within the time at exit") \
	X(METRIC_BATCHES_SENT, "batches_sent", "batches sent to the collector")                    \
	X(METRIC_STORE_EVICTED, "store_evicted",                                                   \
	  "spans that made room in the embedded trace store")                                      \
	X(METRIC_PROCESSES_SEEN, "processes_seen", "processes looked at")                          \
	X(METRIC_PROCESSES_SELECTED, "processes_selected", "processes selected")                   \
	X(METRIC_PROCESSES_FULL, "processes_full", "processes not followed: the table was full")   \
	X(METRIC_WAITING_FULL, "waiting_full",                                                     \
	  "threads whose receive, older than the daemon, is not seen: the table was full")         \
	X(METRIC_PROCESSES_GONE, "processes_gone",                                                 \
	  "processes that ended while they were looked at")                                        \
	X(METRIC_PROCESSES_UNREAD, "processes_unread",                                             \
	  "looks at processes that failed: no descriptors or no memory")                           \
	X(METRIC_PARENT_UNDECIDED, "parent_undecided",                                             \
	  "heads without a decision of the kernel side")                                           \
	X(METRIC_PARENT_HEADER, "parent_header", "parents from a traceparent header")              \
	X(METRIC_PARENT_JOINED, "parent_joined", "parents joined by TCP sequence numbers")         \
	X(METRIC_PARENT_UNIT, "parent_unit", "parents from the open request of the unit of work")  \
	X(METRIC_PARENT_NONE_REMOTE, "parent_none_remote",                                         \
	  "server roots: no header, client not traced here")                                       \
	X(METRIC_PARENT_NONE_NO_UNIT, "parent_none_no_unit",                                       \
	  "client roots: the sender is no unit we can follow")                                     \
	X(METRIC_PARENT_NONE_NO_REQUEST, "parent_none_no_request",                                 \
	  "client roots: the unit has no open request")                                            \
	X(METRIC_PARENT_NONE_AMBIGUOUS, "parent_none_ambiguous",                                   \
	  "client roots: the unit has several open requests")                                      \
	X(METRIC_PARENT_NONE_TRUNCATED, "parent_none_truncated", "roots: the head was truncated")  \
	X(METRIC_PARENT_NONE_LATE, "parent_none_late", "client roots: decided after the send")     \
	X(METRIC_CONTROL_REQUESTS, "control_requests", "commands answered on the control socket")  \
	X(METRIC_PROCESS_READS_CUT, "process_reads_cut",                                           \
	  "files of /proc that were longer than what is read of them")                             \
	X(METRIC_PROCESS_PORTS_FULL, "process_ports_full",                                         \
	  "listening ports not noted: their process has too many")                                 \
	X(METRIC_RESOURCE_ATTRIBUTES_FULL, "resource_attributes_full",                             \
	  "resource attributes of a process left out: there are too many")                         \
	X(METRIC_RESPONSES_BAD, "responses_bad",                                                   \
	  "response heads not whole or not HTTP/1: their spans have no status")                    \
	X(METRIC_PARENT_MISMATCH, "parent_mismatch",                                               \
	  "parents dropped: the traceparent header says something else than the decision")         \
	X(METRIC_CONTROL_REFUSED, "control_refused",                                               \
	  "clients of the control socket turned away: not root, too many, or too slow")            \
	X(METRIC_PRINT_FULL, "print_full",                                                         \
	  "spans or traces not printed: nobody read standard output")                              \
	X(METRIC_PARENTS_TAKEN_BACK, "parents_taken_back",                                         \
	  "client spans made roots: it was not their request's thread that answered")              \
	X(METRIC_LINEAGE_FULL, "lineage_full",                                                     \
	  "spans not held back until their parent was certain: too many are")                      \
	X(METRIC_LINEAGE_DROPPED, "lineage_dropped",                                               \
	  "spans dropped that waited for their parent's answer")                                   \
	X(METRIC_OPEN_BYTES_FULL, "open_bytes_full",                                               \
	  "requests not followed: the memory for open ones was spent")                             \
	X(METRIC_HEADS_UNFINISHED, "heads_unfinished", "request heads whose end never came")       \
	X(METRIC_ROUTES_BAD, "routes_bad",                                                         \
	  "routes of Go servers that are no template of a path: their spans have none")            \
	X(METRIC_GO_PROBES_MOVED, "go_probes_moved",                                               \
	  "probes of a Go program made anew through another container, as the one had ended")      \
	X(METRIC_GO_PROBES_LOST, "go_probes_lost",                                                 \
	  "probes of a Go program that no other container could give its file for")                \
	X(METRIC_GO_FILES_WRITTEN, "go_files_written",                                             \
	  "Go programs without probes since their file was opened for writing")                    \
	X(METRIC_GO_FILES_UNKNOWN, "go_files_unknown",                                             \
	  "Go programs that may share probes and do not: the file behind theirs was not found")    \
	X(METRIC_GO_PROBES_NO_DESCRIPTORS, "go_probes_no_descriptors",                             \
	  "Go programs that probes could not be made for: too few files may be open")              \
	X(METRIC_PROPAGATION_CONNECTIONS_MISSED, "propagation_connections_missed",                 \
	  "connections older than the daemon whose requests go without our traceparent")           \
	X(METRIC_PROPAGATION_CONNECTIONS_BLOCKING, "propagation_connections_blocking",             \
	  "connections older than the daemon without our traceparent: they are not Go's")          \
	X(METRIC_PROPAGATION_SUSPENDED, "propagation_suspended",                                   \
	  "times that no request was given our traceparent for a while: TCP was short of memory")  \
	X(METRIC_PROPAGATION_LIMITED, "propagation_limited",                                       \
	  "processes without our traceparent: their group has a limit of its own for TCP")         \
	X(METRIC_PROPAGATION_PASSED_ON, "propagation_passed_on",                                   \
	  "connections without our traceparent since another process sent something on them")      \
	X(METRIC_PROPAGATION_NOT_FOLLOWED, "propagation_not_followed",                             \
	  "connections taken out of the map of propagation: they carry no HTTP/1 (any more)")      \
	X(METRIC_PROPAGATION_BLOCKING, "propagation_blocking",                                     \
	  "connections without our traceparent since they were made blocking ones")                \
	X(METRIC_PROPAGATION_NAGLE, "propagation_nagle",                                           \
	  "connections without our traceparent since Nagle's algorithm was switched on")           \
	X(METRIC_PROPAGATION_CONNECTIONS_NOT_GO, "propagation_connections_not_go",                 \
	  "connections older than the daemon without our traceparent: not polled as Go's are")     \
	X(METRIC_PROPAGATION_UNREACHABLE, "propagation_unreachable",                               \
	  "processes without our traceparent: the kernel does not let us reach their sockets")     \
	X(METRIC_PROPAGATION_NO_DESCRIPTORS, "propagation_no_descriptors",                         \
	  "processes without our traceparent for seconds: no file descriptor was left to look")    \
	X(METRIC_JVM_AGENTS_USED, "jvm_agents_used", "agents in JVMs that were taken into use")    \
	X(METRIC_JVM_AGENTS_LOADED, "jvm_agents_loaded", "agents that were loaded into JVMs")      \
	X(METRIC_JVM_AGENTS_REFUSED, "jvm_agents_refused",                                         \
	  "JVMs that take no agent: `tsunagictl processes` says why")                              \
	X(METRIC_JVM_AGENTS_FAILED, "jvm_agents_failed",                                           \
	  "attempts to load an agent that came to nothing")                                        \
	X(METRIC_JVM_AGENTS_BROKEN, "jvm_agents_broken",                                           \
	  "agents in use that gave themselves up: `tsunagictl processes` says why")                \
	X(METRIC_JVM_HANDOVERS_LOST, "jvm_handovers_lost",                                         \
	  "jobs and messages in JVMs whose request the agent lost")

#define METRICS_ENUM(id, name, help) id,
enum metric { METRICS(METRICS_ENUM) _METRIC_MAX };

void metrics_add(enum metric metric, uint64_t n);
uint64_t metrics_get(enum metric metric);
const char *metrics_name(enum metric metric);
const char *metrics_help(enum metric metric);

static inline void metrics_increment(enum metric metric)
{
	metrics_add(metric, 1);
}
