"""Containers of one image, whose files are one file of a layer: its probes are there once, and follow the living.

The containers are overlays, each in a namespace of mounts that a keeper holds: so it can be tried whether the overlay
is free when its Go program has ended.
"""

import contextlib
import ctypes
import json
import pathlib
import platform
import shutil
import subprocess
import time

import apps
from cases_chains import need
from cases_go import is_warming, warm
from cases_go_safety import changed_text
from containers import memory
from harness import Skip, expect, expect_true, scaled, wait_until
from judge import Hop, expand
from wire import Wire

SYS_BPF = {"x86_64": 321, "aarch64": 280}
BPF_ENABLE_STATS = 32  # include/uapi/linux/bpf.h; BPF_STATS_RUN_TIME is 0
FREE_S = 1.0           # so long an overlay may be held after its last process
BUSY, IDLE = 7, 4      # fronts, beside one back
PROGRAMS = 50


class Box:
    """An overlay of the image with an upper layer of its own, in a namespace of mounts that a keeper holds."""

    def __init__(self, run, image, name):
        self.run, self.name = run, name
        self.root = image / f"{name}-root"
        upper, work = image / f"{name}-upper", image / f"{name}-work"
        for folder in (self.root, upper, work):
            folder.mkdir()
        self.options = f"index=on,lowerdir={image / 'layer'},upperdir={upper},workdir={work}"
        self.keeper = run.start(f"{name}-keeper", [
            "unshare", "--mount", "--propagation", "private", "sh", "-c",
            f"mount -t overlay -o {self.options} overlay {self.root} && echo ready && exec sleep infinity"])

    def inside(self):
        return ["nsenter", f"--target={self.keeper.pid}", "--mount", "--root", "--"]

    def app(self, *arguments, name=None, **options):
        return self.run.app(name or self.name, [*self.inside(), self.root / "chain", *arguments], **options)

    def umount(self):
        """Whether it could be: from where it is mounted, and nowhere else."""
        done = subprocess.run([*map(str, self.inside()), "umount", self.root], capture_output=True, text=True, check=False)
        return done.returncode == 0

    def mount_again(self):
        """Whether a container with the same layers could be started: the kernel refuses it while the first is held."""
        done = subprocess.run(["mount", "-t", "overlay", "-o", self.options, "overlay", self.root], capture_output=True,
                              text=True, check=False)
        if done.returncode == 0:
            subprocess.run(["umount", self.root], check=True)
        return done.returncode == 0


@contextlib.contextmanager
def image_of(run):
    """A folder with the Go chain in its layer, and room for overlays."""
    need("go", "unshare", "nsenter")
    with memory(run, "image") as image:
        (image / "layer").mkdir()
        shutil.copy(apps.go_chain(), image / "layer/chain")
        yield image


def status_of(daemon):
    return json.loads(daemon.control("--json", "status"))


def expect_shared(daemon):
    """Skips where the kernel does not say which file is behind an overlay's."""
    feature = next(one for one in status_of(daemon)["features"] if one["name"].startswith("Go probes shared"))
    if not feature["available"]:
        raise Skip(f"no shared probes here: {feature['reason']}")


def facts_of(daemon):
    """What the kernel says of the daemon's descriptors: a dictionary each."""
    found = []
    for path in pathlib.Path(f"/proc/{daemon.pid}/fdinfo").iterdir():
        with contextlib.suppress(OSError):
            lines = [line.split(":", 1) for line in path.read_text().splitlines() if ":" in line]
            found.append({name.strip(): value.strip() for name, value in lines})
    return found


def links_of(daemon):
    """The programs of its links in executables, one a link."""
    return [one["prog_id"] for one in facts_of(daemon) if one.get("link_type") in ("uprobe_multi", "perf")]


def runs_of(daemon, program):
    return next(int(one["run_cnt"]) for one in facts_of(daemon) if one.get("prog_id") == program and "run_cnt" in one)


@contextlib.contextmanager
def counted_runs():
    """While this lasts the kernel counts how often programs run."""
    libc = ctypes.CDLL(None, use_errno=True)
    attributes = ctypes.create_string_buffer(128)
    fd = libc.syscall(SYS_BPF[platform.machine()], BPF_ENABLE_STATS, attributes, 128)
    expect(fd >= 0, f"the kernel does not count runs of programs: errno {ctypes.get_errno()}")
    try:
        yield
    finally:
        libc.close(fd)


def hops_of(front, back, may_lack_parent=False):
    name, log = f"load-{front.name}", front.name
    return [Hop("server", "/x/{id}", outer=name, inner=log, pid=front.pid),
            Hop("client", "/back/{id}", outer=log, inner="back", pid=front.pid, may_lack_parent=may_lack_parent),
            Hop("server", "/back/{id}", outer=log, inner="back", pid=back.pid)]


def judge_fronts(run, daemon, fronts, back, without_parents=()):
    run.stop_apps()
    spans = [span for span in daemon.finish() if span["pid"] in run.pids() and not is_warming(span)]
    logs = run.read_logs()
    expected = []
    for front in fronts:
        expected += expand(hops_of(front, back, front in without_parents), logs, load=f"load-{front.name}")
    return expect_true(spans, expected)


def load_all(run, fronts, requests, rate):
    """Load on all of them at a time; their ids tell whose requests they are."""
    return [run.load_start(front.port, requests, 4, name=f"load-{front.name}", id=front.name, rate=rate) for front in fronts]


def wait_all(loads):
    for load in loads:
        expect(load.wait(120) == 0, f"{load.name}: {load.stdout}")


def case_image_shared(run):
    """Twelve containers of one Go image: one link, one run of its program a call, every parent right."""
    with image_of(run) as image:
        daemon = run.daemon()
        expect_shared(daemon)
        boxes = [Box(run, image, "back"), *(Box(run, image, f"front{i}") for i in range(11))]
        back = boxes[0].app("back", "{port}", "{log}")
        fronts = [box.app("front", "{port}", "{log}", back.port) for box in boxes[1:]]
        wait_until(lambda: status_of(daemon)["processes"]["traced"] == 12, 10, "twelve traced processes")
        links = links_of(daemon)
        expect(len(links) == 1, f"{len(links)} links in executables, expected one")
        told = status_of(daemon)["go"]
        expect(told == {"executables": 1, "links": 1}, f"status says {told}")
        requests = scaled(200, 20)
        with counted_runs():
            before = runs_of(daemon, links[0])
            wait_all(load_all(run, fronts, requests, 100))
            runs = runs_of(daemon, links[0]) - before
        calls = requests * len(fronts)
        # at the jump of a stack check it is met again when the stack has grown
        expect(calls <= runs <= calls * 1.2, f"{runs} runs of the program for {calls} calls")
        outcome = judge_fronts(run, daemon, fronts, back)
    return f"{outcome}; {runs} runs for {calls} calls"


def expect_free(box, process):
    """Its process is killed; seconds until the overlay could be unmounted and mounted anew with the same layers."""
    process.kill()
    begin = time.monotonic()
    wait_until(box.umount, FREE_S, f"the overlay of {box.name} free", 0.005)
    wait_until(box.mount_again, FREE_S, f"the layers of {box.name} free for another overlay", 0.005)
    return time.monotonic() - begin


def start_moving(run, daemon, boxes, mode):
    """The links lead through the first box then, and after that through the next; returns services by name."""
    port = run.port()
    started = {"idle0": boxes["idle0"].app("front", "{port}", "{log}", port, *mode)}
    for name in [name for name in boxes if name not in started]:
        wait_until(lambda: status_of(daemon)["processes"]["traced"] == len(started), 10, f"the process before {name} traced")
        role = ("back", "{port}", "{log}") if name == "back" else ("front", "{port}", "{log}", port, *mode)
        started[name] = boxes[name].app(*role, port=port if name == "back" else None)
    wait_until(lambda: status_of(daemon)["processes"]["traced"] == len(boxes), 10, "all processes traced")
    warm(started["idle0"].port)
    return started


def moving(run, mode, links):
    """The containers that the links lead through are killed under load one after the other."""
    with image_of(run) as image:
        daemon = run.daemon()
        expect_shared(daemon)
        idle, busy = [f"idle{i}" for i in range(IDLE)], [f"busy{i}" for i in range(BUSY)]
        boxes = {name: Box(run, image, name) for name in [*idle, "back", *busy]}
        started = start_moving(run, daemon, boxes, mode)
        told = status_of(daemon)["go"]
        expect(told == {"executables": 1, "links": links}, f"status says {told}")
        fronts = [started[name] for name in busy]
        loads = load_all(run, fronts, scaled(1_000, 100), 200)
        held = []
        for name in idle:
            time.sleep(0.5)
            held.append(expect_free(boxes[name], started[name]))
        expect(all(load.running() for load in loads), "the load was over too soon")
        wait_all(loads)
        expect(len(links_of(daemon)) == links, f"{len(links_of(daemon))} links in executables, expected {links}")
        counters = daemon.counters()
        expect((counters["go_probes_moved"], counters["go_probes_lost"]) == (IDLE, 0),
               f"moved {counters['go_probes_moved']} times, lost {counters['go_probes_lost']} times")
        outcome = judge_fronts(run, daemon, fronts, started["back"])
    return f"{outcome}; free again after at most {max(held) * 1000:.0f} ms"


def case_image_moving(run):
    """The container that an image's link leads through is killed under load, four times: nothing missing or wrong."""
    return moving(run, [], 1)


def case_image_moving_children(run):
    """The same with probes for goroutines."""
    return moving(run, ["child"], 4)


def case_image_copied(run):
    """A container that has changed its copy of the executable gives no probes for the others, and has its own."""
    with image_of(run) as image:
        daemon = run.daemon()
        expect_shared(daemon)
        box, changed = Box(run, image, "box"), Box(run, image, "changed")
        port = run.port()
        first = box.app("front", "{port}", "{log}", port)
        wait_until(lambda: status_of(daemon)["go"]["links"] == 1, 10, "the first link")
        back = run.app("back", [apps.go_chain(), "back", "{port}", "{log}"], port=port)
        older = changed.app("front", "{port}", "{log}", port)
        wait_until(lambda: status_of(daemon)["processes"]["traced"] == 3, 10, "three traced processes")
        expect(status_of(daemon)["go"] == {"executables": 2, "links": 2}, "the two containers do not share")
        subprocess.run([*map(str, changed.inside()), "chmod", "711", changed.root / "chain"], check=True)
        newer = changed.app("front", "{port}", "{log}", port, name="newer")
        wait_until(lambda: status_of(daemon)["go"] == {"executables": 3, "links": 3}, 10, "a link in the copy")
        expect_free(box, first)
        wait_until(lambda: daemon.counters()["go_probes_lost"] == 1, 5, "the loss counted")
        expect(status_of(daemon)["go"] == {"executables": 3, "links": 2}, f"status says {status_of(daemon)['go']}")
        why = json.loads(daemon.control("processes", str(older.pid), "--json"))["processes"][0]["no_parents"]
        expect("no process could give its file" in (why or ""), f"the older one has no parents because: {why}")
        wait_all(load_all(run, [older, newer], scaled(500, 20), 200))
        return judge_fronts(run, daemon, [older, newer], back, without_parents=[older])


def case_image_fifty(run):
    """Fifty Go programs with four probes each: the daemon ends within 3 s, and their code is that of their files."""
    need("go")
    with memory(run, "programs") as folder:
        back = run.app("back", [apps.go_chain(), "back", "{port}", "{log}"])
        programs = [shutil.copy(apps.go_chain(), folder / f"program{i}") for i in range(PROGRAMS)]
        fronts = [run.app(f"front{i}", [program, "front", "{port}", "{log}", back.port, "child"])
                  for i, program in enumerate(programs)]
        daemon = run.daemon()
        wait_until(lambda: status_of(daemon)["processes"]["traced"] == PROGRAMS + 1, 10, "all processes traced")
        for front in fronts:
            with Wire(front.port) as wire:
                wire.request(f"/x/warm-{front.name}")
        links = 4 * PROGRAMS + 1  # the back end has no goroutine that calls
        wait_until(lambda: status_of(daemon)["go"]["links"] == links, 20, f"{links} links in executables")
        some = list(zip(fronts, programs))[::10]
        for front, program in some:
            expect(changed_text(front.pid, program) == 4, f"{front.name} has not four probes")
        begin = time.monotonic()
        daemon.end()
        took = time.monotonic() - begin
        expect(took < 3, f"the end took {took:.1f} s")
        for front, program in some:
            changed = changed_text(front.pid, program)
            expect(changed == 0, f"{changed} bytes of {front.name} are changed when the daemon has ended")
    return f"{links} links gone, end after {took:.2f} s"
