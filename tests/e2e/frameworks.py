"""Fronts on Go's web frameworks (tests/apps/frameworks): what they are, how they are built, run and judged.

Used by the end-to-end cases, which run a few of them, and by tests/go/frameworks, which runs all.
"""

import concurrent.futures
import dataclasses
import http.client
import os
import pathlib
import shutil

import apps
from cases_chains import chain_hops
from cases_go import is_warming, warm
from harness import expect, expect_true, scaled
from judge import expand, span_path

SOURCES = apps.SOURCES / "frameworks"
NET_HTTP = ["plain", "context", "child", "child-context"]
FAST = ["plain", "child", "do", "timeout"]  # the first before goroutines are followed


@dataclasses.dataclass
class Framework:
    """A front, on a version of a module."""
    source: str
    module: str = ""
    version: str = ""
    route: str = ""                     # of the mode {0}; empty: its spans have none
    modes: list = dataclasses.field(default_factory=lambda: NET_HTTP)
    may_lack_parent: tuple = ()         # modes whose calls may be roots
    may_lack_route: bool = False        # a request in a hundred may: its router's object was used again before the answer
    written_for: str = ""               # the module that the source names, if that is another one
    go: str = ""                        # toolchain; empty: the host's
    flags: str = ""                     # of go build


FRAMEWORKS = {
    "net-http": Framework("net-http", route="/{0}/{{id}}"),
    "net-http-1.22": Framework("net-http", route="/{0}/{{id}}", go="1.22.12"),
    "net-http-1.23": Framework("net-http", route="/{0}/{{id}}", go="1.23.12", flags="-buildmode=pie"),
    "net-http-1.24": Framework("net-http", route="/{0}/{{id}}", go="1.24.13", flags="-ldflags=-s"),
    "net-http-1.25": Framework("net-http", route="/{0}/{{id}}", go="1.25.14"),
    "net-http-1.27": Framework("net-http", route="/{0}/{{id}}", go="1.27.4", flags="-buildmode=pie"),
    "gin": Framework("gin", "github.com/gin-gonic/gin", "v1.12.0", "/{0}/:id"),
    "gin-1.7": Framework("gin", "github.com/gin-gonic/gin", "v1.7.7", "/{0}/:id", may_lack_route=True),
    "echo-5": Framework("echo-v5", "github.com/labstack/echo/v5", "v5.4.5", "/{0}/:id", may_lack_route=True),
    "echo-4": Framework("echo", "github.com/labstack/echo/v4", "v4.16.4", "/{0}/:id", may_lack_route=True),
    "echo-4.1": Framework("echo", "github.com/labstack/echo/v4", "v4.1.17", "/{0}/:id", may_lack_route=True),
    "echo-3": Framework("echo", "github.com/labstack/echo", "v3.3.10+incompatible",
                        written_for="github.com/labstack/echo/v4"),
    "chi-5": Framework("chi", "github.com/go-chi/chi/v5", "v5.5.0", "/{0}/{{id}}", may_lack_route=True),
    "chi-5.0": Framework("chi", "github.com/go-chi/chi/v5", "v5.0.0", "/{0}/{{id}}", may_lack_route=True),
    "chi-4": Framework("chi", "github.com/go-chi/chi", "v4.1.2+incompatible", written_for="github.com/go-chi/chi/v5"),
    "gorilla": Framework("gorilla", "github.com/gorilla/mux", "v1.8.1", "/{0}/{{id}}"),
    "gorilla-1.7": Framework("gorilla", "github.com/gorilla/mux", "v1.7.4", "/{0}/{{id}}"),
    "gorilla-1.6": Framework("gorilla", "github.com/gorilla/mux", "v1.6.2"),
    "fasthttp": Framework("fasthttp", "github.com/valyala/fasthttp", "v1.78.0", modes=[*FAST, "deadline"]),
    "fasthttp-1.34": Framework("fasthttp", "github.com/valyala/fasthttp", "v1.34.0", modes=[*FAST, "deadline"],
                               may_lack_parent=("timeout", "deadline")),
    "fiber-3": Framework("fiber-v3", "github.com/gofiber/fiber/v3", "v3.1.0", modes=FAST),
    "fiber-2": Framework("fiber", "github.com/gofiber/fiber/v2", "v2.52.15", modes=FAST),
}


def go_environment(version):
    """Toolchains are kept where tests/go has them."""
    cache = pathlib.Path(os.environ.get("TSUNAGI_CACHE", "/var/cache/tsunagi")) / "go"
    environment = {**os.environ, "GOFLAGS": "-mod=mod -buildvcs=false"}
    if version:
        environment |= {"GOTOOLCHAIN": f"go{version}", "GOMODCACHE": str(cache / "mod"), "GOCACHE": str(cache / "build")}
    return environment


def program(name):
    """The path of a front; its modules come from the proxy the first time."""
    framework = FRAMEWORKS[name]
    folder = apps.CACHE / "frameworks" / name
    sources = [SOURCES / framework.source / "main.go", *sorted((SOURCES / "common").iterdir()), pathlib.Path(__file__)]
    folder.mkdir(parents=True, exist_ok=True)
    text = sources[0].read_text()
    if framework.written_for:
        text = text.replace(f'"{framework.written_for}"', f'"{framework.module}"')
    module = f"module example.org/front\n\ngo 1.22\n\nrequire example.org/common v0.0.0\n\n" \
             f"replace example.org/common => {SOURCES / 'common'}\n"
    if framework.module:
        module += f"\nrequire {framework.module} {framework.version}\n"
    product = folder / "front"
    if not product.exists() or product.stat().st_mtime < max(s.stat().st_mtime for s in sources):
        (folder / "main.go").write_text(text)
        (folder / "go.mod").write_text(module)
        (folder / "go.sum").unlink(missing_ok=True)
        shutil.rmtree(folder / "vendor", ignore_errors=True)
    command = f"go mod tidy && go build -p 2 {framework.flags} -o front ."
    return apps.build(product, sources, ["sh", "-c", command], cwd=folder, env=go_environment(framework.go))


def mix(port, modes, requests):
    """Requests for all routes, one after the other on each of eight connections; returns how many."""
    def worker(n):
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
        for i in range(requests):
            connection.request("GET", f"/{modes[(n + i) % len(modes)]}/mix-{n}-{i}")
            connection.getresponse().read()
        connection.close()
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        list(pool.map(worker, range(8)))
    return 8 * requests


def check_routes(framework, spans, front):
    """Counts the front's server spans with the route and the name that they should have, and without; fails at others."""
    right = absent = 0
    for span in spans:
        if span["pid"] != front.pid or span["kind"] != "server":
            continue
        route = framework.route.format(span_path(span).split("/")[1])
        found, name = span["attributes"].get("http.route", ""), span["name"]
        expect(found in (route, "") and name == f"GET {found}".strip(),
               f"{span_path(span)}: route '{found}', name '{name}', should be '{route}'")
        right, absent = right + (found == route), absent + (found != route)
    allowed = (right + absent) // 100 if framework.may_lack_route else 0
    expect(absent <= allowed, f"{absent} of {right + absent} routes are not there")
    return right, absent


def chain(run, name, requests, connections=64):
    """One front with its back under load, in its first mode and then in all others at once; returns the verdict as text."""
    framework = FRAMEWORKS[name]
    back = run.app("back", [apps.go_chain(), "back", "{port}", "{log}"])
    front = run.app("front", [program(name), "{port}", "{log}", back.port])
    daemon = run.daemon()

    def load(mode, share):
        return run.load_start(front.port, scaled(requests), connections // share, name=f"load-{mode}", prefix=f"/{mode}/",
                              id=mode, traceparent=20)

    first, *others = framework.modes
    loads = [load(first, 1)]
    loads[0].wait(120)
    warm(front.port, "/child/")
    loads += [load(mode, len(others)) for mode in others]
    mixed = mix(front.port, framework.modes, 50)
    for one in loads:
        status = one.wait(120)
        expect(status == 0, f"{one.name}: {one.stdout}")
    run.stop_apps()
    spans = [span for span in daemon.finish() if span["pid"] in run.pids() and not is_warming(span)]
    expected, logs = [], run.read_logs()
    for mode in framework.modes:
        hops = chain_hops(front, back, client_may_lack_parent=mode in framework.may_lack_parent)
        hops[0].path = f"/{mode}/{{id}}"
        hops[0].outer = f"load-{mode}"
        expected += expand(hops, logs, load=f"load-{mode}")
    ours = [span for span in spans if "/mix-" not in span_path(span)]
    text = expect_true(ours, expected, may_be_loose=True)  # the fronts do not write down what they measure
    right, absent = check_routes(framework, spans, front)
    expect(right + absent == len(expected) // 3 + mixed, f"{right + absent} server spans of {len(expected) // 3 + mixed}")
    return f"{text}; {right} routes right, {absent} absent"
