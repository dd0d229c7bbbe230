"""Services in containers: identities and joins hold across namespaces, roots, cgroups and address translation."""

import contextlib
import json
import os
import pathlib
import shutil
import subprocess

import apps
import judge
from cases_chains import chain_hops, need
from containers import FIRST_USER, Container, memory
from harness import Failure, Jaeger, Skip, expect, expect_true, scaled, wait_until
from judge import Expected, Hop, expand
from networks import Network
from wire import Wire


def process_of(daemon, pid):
    """What tsunagictl says of one process."""
    return json.loads(daemon.control("processes", str(pid), "--json"))["processes"][0]


def expect_process(daemon, pid, **facts):
    found = process_of(daemon, pid)
    for key, value in facts.items():
        expect(found[key] == value, f"process {pid}: {key} is {found[key]!r}, expected {value!r}; {found['why']}")


def finish_chain(run, daemon, front, back):
    run.stop_apps()
    spans = daemon.finish()
    expected = expand(chain_hops(front, back), run.read_logs())
    outcome = expect_true(spans, expected)
    return outcome, spans


def services_of(spans):
    return {span["pid"]: span["service"] for span in spans}


def case_container_chain(run):
    """A chain in one container: all namespaces, an overlay root, a docker cgroup; pids, names, ids, joins right."""
    with Container(run, "shop") as container:
        back = container.app("back", apps.python("threaded.py", "{port}", "{log}"),
                             env={**os.environ, "OTEL_SERVICE_NAME": "shop-back"})
        front = container.app("front", apps.python("threaded.py", "{port}", "{log}", back.port))
        daemon = run.daemon("discover:\n  include:\n"
                            f'    - {{container: "{container.id[:12]}", exe: "python3*"}}\n')
        run.load(front.port, scaled(500), 4, inside=container.inside_network())
        for pid in (front.pid, back.pid):
            expect_process(daemon, pid, container=container.id, state="traced", unit=None)
        outcome, spans = finish_chain(run, daemon, front, back)
    names = services_of(spans)
    expect(names == {front.pid: "threaded", back.pid: "shop-back"}, f"names {names}")
    return outcome


def fill_java_image(image):
    """What lies over the host's root: a jar of the front service, and a release file of a JDK of its own."""
    (image / "opt/shop").mkdir(parents=True)
    jar = image / "opt/shop/shop-front-1.2.3.jar"
    done = subprocess.run(["jar", "cfe", jar, "Front", "-C", apps.java_classes(), "."], capture_output=True, text=True,
                          check=False)
    if done.returncode:
        raise Skip(f"no jar tool: {done.stderr.strip()}")
    home = pathlib.Path(shutil.which("java")).resolve().parents[1]
    release = image / home.relative_to("/") / "release"
    release.parent.mkdir(parents=True)
    release.write_text('JAVA_VERSION="17.99.9"\n')
    shutil.copy(apps.go_chain(), image / "opt/shop/stock")


def case_container_java(run):
    """Java and Go from a container's own files: jar, module, runtime's version and executable are those of its root."""
    need("java", "javac", "go")
    with memory(run, "image") as image, \
            Container(run, "shop", "system.slice/docker-{id}.scope", image=image) as container:
        fill_java_image(image)
        back = container.app("back", ["/opt/shop/stock", "back", "{port}", "{log}"])
        front = container.app("front", ["java", "-Dsun.net.httpserver.nodelay=true", "-jar",
                                        "/opt/shop/shop-front-1.2.3.jar", "{port}", back.port, "{log}"])
        jaeger = Jaeger(run)
        daemon = run.daemon("discover:\n  include:\n"
                            f'    - {{language: jvm, user: {FIRST_USER}}}\n'
                            '    - {language: go, exe: "/opt/shop/*"}\n' f"endpoint: {jaeger.endpoint}\n")
        run.load(front.port, scaled(1_000), 8, inside=container.inside_network())
        expect_process(daemon, front.pid, container=container.id, language="jvm", version="17.99.9")
        expect_process(daemon, back.pid, container=container.id, language="go", exe="/opt/shop/stock", port=back.port)
        outcome, spans = finish_chain(run, daemon, front, back)
        names = services_of(spans)
        expect(names == {front.pid: "shop-front", back.pid: "chain"}, f"names {names}")
        expect_resources(jaeger, container, front, back)
    return outcome


def expect_resources(jaeger, container, front, back):
    """What the collector was told of the processes."""
    for name, pid in (("shop-front", front.pid), ("chain", back.pid)):
        traces = wait_until(lambda n=name: jaeger.get(f"/api/traces?service={n}&limit=1")["data"], 5, f"{name} in Jaeger")
        process = next(p for p in traces[0]["processes"].values() if p["serviceName"] == name)
        tags = {tag["key"]: tag["value"] for tag in process["tags"]}
        for key, value in {"container.id": container.id, "process.pid": pid, "process.owner": str(FIRST_USER)}.items():
            expect(tags.get(key) == value, f"{name}: {key} is {tags.get(key)!r}, expected {value!r}")


def patched_copy(program, to, changes):
    """A copy in which texts are replaced by others of the same length; its time is the program's."""
    content = program.read_bytes()
    for old, new in changes.items():
        expect(len(old) == len(new) and old in content, f"{program} has no {old!r}")
        content = content.replace(old, new)
    to.write_bytes(content)
    to.chmod(0o755)
    times = program.stat()
    os.utime(to, ns=(times.st_atime_ns, times.st_mtime_ns))
    return to


def go_version(program):
    words = subprocess.run(["go", "version", program], capture_output=True, text=True, check=True).stdout.split()
    return words[-1]


def case_container_siblings(run):
    """Six containers of one executable, three in one pid namespace, and a hard link of it: each has its own spans."""
    need("go")
    program = apps.go_chain()
    link = run.apps / "linked"
    shutil.copy(program, run.apps / "original")
    os.link(run.apps / "original", link)
    with contextlib.ExitStack() as stack:
        containers = [stack.enter_context(Container(run, f"box-{i}", options=("-n",))) for i in range(4)]
        services = [c.app(c.name, [program, "back", "{port}", "{log}"]) for c in containers]
        shared = [stack.enter_context(Container(run, f"shared-{i}", "kubepods/besteffort/pod1/{id}", options=("-n", "-p")))
                  for i in range(2)]
        for container in shared:  # as the containers of a pod may
            container.before = ["nsenter", f"--pid=/proc/{services[0].pid}/ns/pid", "--"]
            services.append(container.app(container.name, [program, "back", "{port}", "{log}"]))
        services.append(run.app("original", [run.apps / "original", "back", "{port}", "{log}"]))
        services.append(run.app("linked", [link, "back", "{port}", "{log}"]))
        daemon = run.daemon()
        records = {}
        for service in services:
            with Wire(service.port, records) as wire:
                for i in range(5):
                    wire.request(f"/{service.name}/{service.name}-{i}")
        for service, container in zip(services, containers + shared):
            expect_process(daemon, service.pid, container=container.id, language="go")
        run.stop_apps()
        spans = daemon.finish()
    expected = [Expected(request=request, kind="server", path=record["path"], status=record["status"],
                         pid=next(s.pid for s in services if request.startswith(f"{s.name}-")))
                for (_, request), record in records.items()]
    return expect_true(spans, expected, least=40)


def case_equal_inodes(run):
    """Two executables with one inode number, size and time, on two file systems: each is what it is."""
    need("go")
    version = go_version(apps.go_chain())
    other = "go9" + version[3:]
    with memory(run, "one") as one, memory(run, "two") as two:
        programs = [patched_copy(apps.go_chain(), one / "chain", {}),
                    patched_copy(apps.go_chain(), two / "chain", {version.encode(): other.encode()})]
        stats = [program.stat() for program in programs]
        if len({(s.st_ino, s.st_size, s.st_mtime_ns) for s in stats}) != 1:
            raise Skip("the file systems gave different inode numbers")
        services = [run.app(f"app-{i}", [program, "hello", "{port}", "{log}"]) for i, program in enumerate(programs)]
        daemon = run.daemon()
        for service in services:
            with Wire(service.port) as wire:
                wire.request(f"/inode/{service.name}")
        expect_process(daemon, services[0].pid, language="go", version=version)
        expect_process(daemon, services[1].pid, language="go", version=other)
        run.stop_apps()
        spans = daemon.finish()
    expected = [Expected(request=s.name, kind="server", path=f"/inode/{s.name}", pid=s.pid) for s in services]
    return expect_true(spans, expected) + f"; {version} and {other}"


DNAT = """
table ip published {
  chain prerouting {
    type nat hook prerouting priority dstnat;
    ip daddr 10.77.1.1 tcp dport 8080 dnat to 10.77.2.2:9090
  }
}
"""


def published_networks(run):
    """Two networks and a router between them that publishes a port of the second one at its own address."""
    router, ours, theirs = Network(run, "router"), Network(run, "ours"), Network(run, "theirs")
    router.connect(ours, "10.77.1.1/24", "10.77.1.2/24")
    router.connect(theirs, "10.77.2.1/24", "10.77.2.2/24")
    ours.do("ip", "route", "add", "default", "via", "10.77.1.1")
    theirs.do("ip", "route", "add", "default", "via", "10.77.2.1")
    router.do("sh", "-c", "echo 1 >/proc/sys/net/ipv4/ip_forward")
    try:
        router.do("nft", "-f", "-", text=DNAT)
    except Failure as refusal:
        raise Skip(f"no address translation here: {refusal}") from None
    return ours, theirs


def case_dnat(run):
    """A chain between two networks across a published port: joined, and each end has the addresses that it sees."""
    need("ip", "nft")
    ours, theirs = published_networks(run)
    back = run.app("back", [*theirs.inside(), *apps.python("threaded.py", ":::9090", "{log}")])
    front = run.app("front", [*ours.inside(), *apps.python("threaded.py", "{port}", "{log}", "10.77.1.1:8080")])
    daemon = run.daemon()
    run.load(front.port, scaled(500), 4, inside=ours.inside())
    run.stop_apps()
    spans = daemon.finish()
    expected = expand(chain_hops(front, back), run.read_logs())
    for one in expected:
        if one.kind == "client":
            one.attributes = {"network.peer.address": "10.77.1.1", "network.peer.port": 8080,
                              "server.address": "10.77.1.1", "server.port": 8080}
        elif one.pid == back.pid:
            one.attributes = {"network.peer.address": "10.77.1.2", "client.address": "10.77.1.2"}
    ports = {span["attributes"].get("network.peer.port") for span in spans if span["pid"] == back.pid}
    expect(0 not in ports and 9090 not in ports, f"peer ports {sorted(ports)}")
    return expect_true(spans, expected)


def proxy_chain(run, mode, is_selected):
    """front → a TCP proxy → back."""
    back = run.app("back", apps.python("threaded.py", "{port}", "{log}"))
    proxy = run.app("proxy", [apps.c_program("tcp_proxy"), "{port}", back.port, mode], log=False)
    front = run.app("front", apps.python("threaded.py", "{port}", "{log}", proxy.port))
    daemon = run.daemon(run.config(include='{exe: "tcp_proxy"}' if is_selected else ""))
    run.load(front.port, scaled(400), 4)
    run.stop_apps()
    spans = daemon.finish()
    sees = is_selected and mode != "splice"
    hops = [Hop("server", "/x/{id}", outer="load", inner="front", pid=front.pid),
            Hop("client", "/back/{id}", outer="front", inner="back", pid=front.pid)]
    if sees:
        hops += [Hop("server", "/back/{id}", outer="front", inner="back", pid=proxy.pid),
                 Hop("client", "/back/{id}", outer="front", inner="back", pid=proxy.pid, may_lack_parent=True)]
    hops.append(Hop("server", "/back/{id}", outer="front", inner="back", pid=back.pid, follows=-1 if sees else None))
    return expect_true(spans, expand(hops, run.read_logs()))


def case_proxy_unselected(run):
    """Across a TCP proxy that is not traced nothing is joined: its bytes are other bytes."""
    return proxy_chain(run, "threads", False)


def case_proxy_selected(run):
    """A traced TCP proxy with threads has spans of its own, between caller and called."""
    return proxy_chain(run, "threads", True)


def case_proxy_poll(run):
    """The same with one thread for all connections: a parent is right or absent."""
    return proxy_chain(run, "poll", True)


def case_proxy_splice(run):
    """A traced TCP proxy that splices: it has no spans, and nothing is joined across it."""
    return proxy_chain(run, "splice", True)
