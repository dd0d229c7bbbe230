"""What a daemon holds at a moment: resident memory, file descriptors, links, maps and the entries in them."""

import contextlib
import dataclasses
import json
import os
import pathlib
import subprocess

from harness import expect

PAGE = os.sysconf("SC_PAGESIZE")
COUNTED = ("procs", "requests", "units", "joins")  # maps whose entries come and go


def bpftool(*arguments):
    done = subprocess.run(["bpftool", "-j", *arguments], capture_output=True, text=True, check=False,
                          env={**os.environ, "PATH": f"{os.environ['PATH']}:/usr/sbin:/sbin"})
    return json.loads(done.stdout or "[]")


def held(pid, key):
    """Ids of the kernel's objects that the process holds: a line of that key in the descriptor's information."""
    ids = []
    for info in pathlib.Path(f"/proc/{pid}/fdinfo").iterdir():
        with contextlib.suppress(OSError):  # closed meanwhile
            ids += [int(line.split()[1]) for line in info.read_text().splitlines() if line.startswith(f"{key}:")]
    return ids


def says_what_is_used():
    """Whether the kernel says what a map takes (Linux 6.4); before, it is what one would take if it were full."""
    return tuple(int(n) for n in os.uname().release.split(".")[:2]) >= (6, 4)


def kernel_bytes():
    """Memory of the kernel of the kinds that maps and programs are made of."""
    lines = dict(line.split(":") for line in pathlib.Path("/proc/meminfo").read_text().splitlines())
    return sum(int(lines[name].split()[0]) << 10 for name in ("Slab", "VmallocUsed", "Percpu"))


def resident(pid):
    return int(pathlib.Path(f"/proc/{pid}/statm").read_text().split()[1]) * PAGE


def maps(pid):
    """Maps of the process by name: what bpftool says of each."""
    mine = held(pid, "map_id")
    return {one.get("name", ""): one for one in bpftool("map", "show") if one["id"] in mine}


def entries(pid):
    """Entries of the maps that fill and empty, by name."""
    return {name: len(bpftool("map", "dump", "id", str(one["id"]))) for name, one in maps(pid).items()
            if name in COUNTED}


@dataclasses.dataclass
class Held:
    fds: int
    links: int
    maps: int
    entries: dict

    @classmethod
    def by(cls, pid):
        links, mine = held(pid, "link_id"), held(pid, "map_id")
        found = entries(pid)
        expect(links and set(found) == set(COUNTED), f"links {links}, maps {found}")
        return cls(len(os.listdir(f"/proc/{pid}/fd")), len(links), len(mine), found)

    def more_than(self, before, processes=0):
        """What is more than it was, as text; empty: nothing. So many more processes are traced than then."""
        allowed = {**before.entries, "procs": before.entries["procs"] + processes}
        grown = [f"{name} {n}, was {allowed[name]}" for name, n in self.entries.items() if n > allowed[name]]
        for name in ("fds", "links", "maps"):
            if getattr(self, name) > getattr(before, name):
                grown.append(f"{getattr(self, name)} {name}, were {getattr(before, name)}")
        return "; ".join(grown)


def status(daemon):
    return json.loads(daemon.control("--json", "status"))
