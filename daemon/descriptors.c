/* Limits on open files; see descriptors.h. */
#include "descriptors.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/resource.h>

#include "base/log.h"
#include "base/util.h"

/*
 * The highest numbers, which no probe is given: clients of the control socket (8), agents that are
 * being loaded (8), what insertion loads while probes are made (16), the exporter's connection, a
 * look at a process, what is opened for moments.
 */
#define RESERVE 80

/* The programs and maps of the tap and of Go, with room for a tap that is there in four copies. */
#define OWN 256

/* What one probe takes, without uprobe_multi (Linux 6.6). */
#define PROBE_FILES 2

/*
 * A Go program has four probes, with routers more, and each is two files on older kernels; its file
 * is open as well. But not every process is another Go program.
 */
#define PER_PROCESS 5

/* What the kernel allows where nobody has changed it (fs.nr_open); it is used up by nobody. */
#define MOST 1048576

static uint64_t read_nr_open(void)
{
	FILE *file = fopen("/proc/sys/fs/nr_open", "re");
	uint64_t n = MOST;

	if (!file)
		return n;
	if (fscanf(file, "%" SCNu64, &n) != 1)
		n = MOST;
	fclose(file);
	return n;
}

/* Returns 0 or a negative errno; the limit is as high as it could be made in any case. */
static int raise_to(uint64_t wanted, struct rlimit *limit)
{
	struct rlimit raised = {.rlim_cur = wanted, .rlim_max = MAX(wanted, limit->rlim_max)};

	if (limit->rlim_max < wanted && setrlimit(RLIMIT_NOFILE, &raised) == 0) {
		*limit = raised;
		return 0;
	}
	/* Not beyond what is of use, where the hard one is: some take it for a number to count to. */
	raised = *limit;
	raised.rlim_cur = MAX(limit->rlim_cur, MIN(limit->rlim_max, MOST));
	if (setrlimit(RLIMIT_NOFILE, &raised) < 0)
		return -errno;
	*limit = raised;
	return limit->rlim_max < wanted ? -EPERM : 0;
}

void descriptors_raise(uint32_t processes_max)
{
	uint64_t wanted = OWN + RESERVE + PER_PROCESS * (uint64_t)processes_max;
	struct rlimit limit;
	int r;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0) {
		log_warning("Cannot tell how many files may be open, ignoring: %m");
		return;
	}
	wanted = MIN(wanted, MIN(read_nr_open(), (uint64_t)MOST));
	r = raise_to(wanted, &limit);
	if (r < 0 && limit.rlim_cur < wanted)
		log_debug("At most %" PRIu64 " files may be open, and %" PRIu64
			  " may be needed for %" PRIu32 " processes (limits.processes)",
			  (uint64_t)limit.rlim_cur, wanted, processes_max);
}

bool descriptors_are_short(int fd)
{
	struct rlimit limit;
	int lowest;

	/*
	 * The kernel gives out the lowest number that is free: if probes are made below the reserve
	 * only, the numbers in it are free for all others, whatever has been closed in between.
	 */
	if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
		return false;
	lowest = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	if (lowest < 0)
		return errno == EMFILE;
	close(lowest);
	return (uint64_t)lowest + PROBE_FILES + RESERVE > limit.rlim_cur;
}

void descriptors_warn_short(void)
{
	static bool is_said;
	struct rlimit limit;

	if (is_said || getrlimit(RLIMIT_NOFILE, &limit) < 0)
		return;
	is_said = true;
	log_warning("At most %" PRIu64
		    " files may be open, and none is left for probes in one more Go "
		    "program: calls of such programs have no parents. Raise LimitNOFILE",
		    (uint64_t)limit.rlim_cur);
}
