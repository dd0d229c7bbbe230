"""Containers for the end-to-end tests: namespaces, a root of its own, and a cgroup named as an engine names it.

Made by tests/apps/c/contain, so no engine is needed. Everything a Container makes lives in its own mount namespace
and ends with its processes, but for the cgroup, which close() removes.
"""

import contextlib
import os
import pathlib
import secrets
import subprocess

import apps
from harness import Skip, expect, wait_until

FIRST_USER = 100000  # of the host, who is root in a container


def cgroup_root():
    """Where cgroup v2 is mounted; mounted here and now where a machine has it nowhere."""
    for line in pathlib.Path("/proc/mounts").read_text().splitlines():
        _, place, kind, *_ = line.split()
        if kind == "cgroup2":
            return pathlib.Path(place)
    place = pathlib.Path("/sys/fs/cgroup")
    done = subprocess.run(["mount", "-t", "cgroup2", "none", place], capture_output=True, text=True, check=False)
    if done.returncode:
        raise Skip(f"no cgroup v2 here: {done.stderr.strip()}")
    return place


def user_options():
    """Options of contain for users of its own; none where the machine's own root is a chroot, which forbids it."""
    may = subprocess.run(["unshare", "--user", "true"], capture_output=True, check=False).returncode == 0
    return ("-u", FIRST_USER) if may else ()


def status_field(pid, name):
    for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(f"{name}:"):
            return line.split(":", 1)[1].split()
    return []


def children_of(parent):
    found = []
    for path in pathlib.Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            if int(path.read_text().rpartition(")")[2].split()[1]) == parent:
                found.append(int(path.parent.name))
    return found


def descendant(pid):
    """The last of a line of only children: the program behind the wrappers, by its pid of the host."""
    while children := children_of(pid):
        pid = children[0]
    return pid


@contextlib.contextmanager
def memory(run, name):
    """A folder of the run that is a file system of its own: a layer of an overlay must not lie inside another."""
    folder = run.directory / name
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "none", folder], check=True)
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", folder], check=True)


class Container:
    """One container of a run. 'scope' is the cgroup's name with {id}; 'image': a folder of memory() that lies over the
    host's root; 'options': of contain. The first service started in it makes it, all others join."""

    def __init__(self, run, name, scope="docker-{id}.scope", image=None, options=None):
        self.run = run
        self.name = name
        self.id = secrets.token_hex(32)
        self.options = user_options() if options is None else options
        self.image = image
        self.first = None
        self.before = []  # a command that contain is to be started by
        self.overlay = run.directory / f"{name}-root"
        self.overlay.mkdir()
        self.cgroup = cgroup_root() / scope.format(id=self.id)
        self.made = []
        for part in [*reversed(self.cgroup.parents), self.cgroup]:
            if not part.exists():
                part.mkdir()
                self.made.append(part)
        for path in (run.directory, run.apps):
            path.chmod(0o755 if path == run.directory else 0o777)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        for process in self.run.processes:
            if getattr(process, "container", None) is self:
                process.end_quickly()
        with contextlib.suppress(OSError):
            (self.cgroup / "cgroup.kill").write_text("1")
        for part in reversed(self.made):
            wait_until(lambda p=part: self.removed(p), 5, f"an empty {part}")

    @staticmethod
    def removed(part):
        with contextlib.suppress(OSError):
            part.rmdir()
        return not part.exists()

    def shown(self):
        """Folders of the host that the root shows, for the services' programs and logs."""
        paths = [self.run.apps, apps.CACHE, apps.SOURCES]
        paths += [path for path in (apps.VENV, apps.JDKS) if path.exists()]
        return [item for path in paths for item in ("-b", path)]

    def enter(self):
        """argv that enters the container; for programs that are not its services also just its network."""
        if not self.first:
            lower = f"{self.image}:/" if self.image else "/"
            return [*self.before, apps.c_program("contain"), "-g", self.cgroup, "-o", self.overlay, "-l", lower, *self.shown(),
                    *self.options, "--"]
        return ["/bin/sh", "-c", f'echo 0 >"{self.cgroup}/cgroup.procs" && exec "$@"', "sh",
                "nsenter", "-t", self.first.pid, "-a", "-r", "--"]

    def inside_network(self):
        return ["nsenter", f"--net=/proc/{self.first.pid}/ns/net"]

    def app(self, name, argv, **options):
        """A service, as run.app; its .pid is the program's own on the host."""
        process = self.run.app(name, [*self.enter(), *argv], **options)
        process.container = self
        process.pid = descendant(process.popen.pid)
        expect(process.pid != process.popen.pid, f"{name} is not in a container")
        self.first = self.first or process
        return process
