/*
 * A container made of the kernel's own parts, for the end-to-end tests: what docker, containerd and
 * podman do, without them. Namespaces for processes, mounts, network, names, IPC, cgroups and users,
 * a cgroup whose name is the caller's, and a root that is an overlay.
 *
 * contain [OPTION...] -- PROGRAM [ARGUMENT...]
 *   -g DIR    join this cgroup (its directory in the file system) first
 *   -o DIR    the root is an overlay, mounted there, of ...
 *   -l DIRS   ... these lower layers, separated by ':', under an upper layer in memory
 *   -b PATH   show this folder of the host in the root, at the same place; may be repeated
 *   -c        chroot into the root, instead of pivot_root
 *   -u FIRST  a user namespace whose users 0 to 65535 are FIRST and following of the host
 *   -n        stay in the caller's network namespace
 *   -p        stay in the caller's namespace of processes
 *
 * Stays outside and ends as the program does. SIGTERM goes on to the program. With a namespace of
 * processes the program is a child of its first process, as under "docker run --init".
 */
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { BINDS_MAX = 16 };

struct container {
	const char *cgroup, *overlay, *lower, *binds[BINDS_MAX];
	size_t n_binds;
	unsigned long first_user;
	bool has_users, is_chroot, keeps_network, keeps_processes;
	int asked[2], answered[2]; /* pipes: the child asks for its users to be mapped */
};

static volatile sig_atomic_t child;

static void die(const char *what)
{
	fprintf(stderr, "contain: %s: %s\n", what, strerror(errno));
	exit(125);
}

static void pass_on(int signal)
{
	if (child > 0)
		kill(child, signal);
}

static void write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);

	if (fd < 0 || write(fd, text, strlen(text)) < 0)
		die(path);
	close(fd);
}

static void join_cgroup(const char *directory)
{
	char path[4096];

	snprintf(path, sizeof(path), "%s/cgroup.procs", directory);
	write_file(path, "0");
}

static void make_directories(char *path)
{
	for (char *at = path + 1; *at; at++) {
		if (*at != '/')
			continue;
		*at = '\0';
		mkdir(path, 0755);
		*at = '/';
	}
	mkdir(path, 0755);
}

static void show(const struct container *c, const char *path)
{
	char target[4096];

	snprintf(target, sizeof(target), "%s%s", c->overlay, path);
	make_directories(target);
	if (mount(path, target, NULL, MS_BIND | MS_REC, NULL) < 0)
		die(target);
}

/* The upper layer lives in memory, and with this namespace of mounts. */
static void mount_overlay(const struct container *c)
{
	char upper[4096], options[8192];

	if (mount("tmpfs", c->overlay, "tmpfs", 0, NULL) < 0)
		die("mount of a tmpfs");
	snprintf(upper, sizeof(upper), "%s/upper", c->overlay);
	if (mkdir(upper, 0755) < 0)
		die(upper);
	snprintf(upper, sizeof(upper), "%s/work", c->overlay);
	if (mkdir(upper, 0755) < 0)
		die(upper);
	snprintf(options, sizeof(options), "lowerdir=%s,upperdir=%s/upper,workdir=%s/work",
		 c->lower, c->overlay, c->overlay);
	if (mount("overlay", c->overlay, "overlay", 0, options) < 0)
		die(options);
}

static void enter_root(const struct container *c)
{
	char proc[4096];

	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		die("making mounts private");
	if (!c->overlay) {
		if (!c->keeps_processes && mount("proc", "/proc", "proc", 0, NULL) < 0)
			die("mount of /proc");
		return;
	}
	mount_overlay(c);
	show(c, "/dev");
	for (size_t i = 0; i < c->n_binds; i++)
		show(c, c->binds[i]);
	snprintf(proc, sizeof(proc), "%s/proc", c->overlay);
	if (mount("proc", proc, "proc", 0, NULL) < 0)
		die("mount of /proc");
	if (chdir(c->overlay) < 0)
		die(c->overlay);
	if (c->is_chroot) {
		if (chroot(".") < 0)
			die("chroot");
		return;
	}
	/* pivot_root(2): the old root comes to lie over the new one, and is taken away. */
	if (syscall(SYS_pivot_root, ".", ".") < 0 || umount2(".", MNT_DETACH) < 0 || chdir("/") < 0)
		die("pivot_root");
}

static void raise_loopback(void)
{
	struct ifreq request = {.ifr_name = "lo", .ifr_flags = IFF_UP};
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || ioctl(fd, SIOCSIFFLAGS, &request) < 0)
		die("raising lo");
	close(fd);
}

/* Only who is outside may give users of the host. */
static void become_user(const struct container *c)
{
	char byte = 'x';

	if (unshare(CLONE_NEWUSER) < 0 || write(c->asked[1], &byte, 1) != 1 ||
	    read(c->answered[0], &byte, 1) != 1)
		die("user namespace");
	if (setresgid(0, 0, 0) < 0 || setresuid(0, 0, 0) < 0)
		die("becoming the namespace's root");
}

static void map_users(const struct container *c, pid_t pid)
{
	static const char *const names[] = {"uid_map", "gid_map"};
	char byte, path[64], text[64];

	if (read(c->asked[0], &byte, 1) != 1)
		return; /* it has said why */
	snprintf(text, sizeof(text), "0 %lu 65536", c->first_user);
	for (size_t i = 0; i < 2; i++) {
		snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, names[i]);
		write_file(path, text);
	}
	if (write(c->answered[1], &byte, 1) != 1)
		die("answer to the child");
}

static int wait_for_child(void)
{
	int status = 0;
	pid_t pid;

	while ((pid = wait(&status)) != child)
		if (pid < 0 && errno != EINTR)
			die("wait");
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* Forks; the parent stays until the child has ended, and ends as it did. */
static void leave_to_child(const struct container *c)
{
	pid_t pid = fork();

	if (pid < 0)
		die("fork");
	if (pid == 0)
		return;
	child = pid;
	signal(SIGTERM, pass_on);
	if (c && c->has_users) {
		close(c->asked[1]);
		map_users(c, pid);
	}
	exit(wait_for_child());
}

static void enter(const struct container *c)
{
	int flags = CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWCGROUP;

	if (c->cgroup)
		join_cgroup(c->cgroup);
	if (!c->keeps_network)
		flags |= CLONE_NEWNET;
	if (!c->keeps_processes)
		flags |= CLONE_NEWPID;
	if (unshare(flags) < 0)
		die("unshare");
	leave_to_child(c);
	signal(SIGTERM, SIG_DFL);
	/* In the child: pivot_root would move the parent's root with it. */
	if (unshare(CLONE_NEWNS) < 0)
		die("unshare of mounts");
	if (!c->keeps_network)
		raise_loopback();
	enter_root(c);
	if (sethostname("contained", 9) < 0)
		die("sethostname");
	if (c->has_users)
		become_user(c);
	if (!c->keeps_processes)
		leave_to_child(NULL);
}

int main(int argc, char **argv)
{
	struct container c = {};
	int option;

	while ((option = getopt(argc, argv, "+g:o:l:b:cu:np")) != -1) {
		switch (option) {
		case 'g':
			c.cgroup = optarg;
			break;
		case 'o':
			c.overlay = optarg;
			break;
		case 'l':
			c.lower = optarg;
			break;
		case 'b':
			if (c.n_binds == BINDS_MAX)
				die("too many -b");
			c.binds[c.n_binds++] = optarg;
			break;
		case 'c':
			c.is_chroot = true;
			break;
		case 'u':
			c.first_user = strtoul(optarg, NULL, 10);
			c.has_users = true;
			break;
		case 'n':
			c.keeps_network = true;
			break;
		case 'p':
			c.keeps_processes = true;
			break;
		default:
			return 125;
		}
	}
	if (!argv[optind] || (c.overlay && !c.lower)) {
		fputs("usage: contain [OPTION...] -- PROGRAM [ARGUMENT...]\n", stderr);
		return 125;
	}
	if (pipe2(c.asked, O_CLOEXEC) < 0 || pipe2(c.answered, O_CLOEXEC) < 0)
		die("pipe");
	enter(&c);
	execvp(argv[optind], argv + optind);
	die(argv[optind]);
}
