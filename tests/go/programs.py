"""Go programs of every toolchain from 1.17 to 1.27 and of many kinds of build, for the tests of this folder.

Toolchains come from the module proxy; they and the programs are kept in $TSUNAGI_CACHE/go. Those of the source APP are
built once; those of other sources again when the source has changed.
"""

import hashlib
import os
import pathlib
import shutil
import struct
import subprocess

HERE = pathlib.Path(__file__).resolve().parent
APP = HERE / "app"
CACHE = pathlib.Path(os.environ.get("TSUNAGI_CACHE", "/var/cache/tsunagi")) / "go"
VERSIONS = ["1.17.13", "1.18.10", "1.19.13", "1.20.14", "1.21.13", "1.22.12", "1.23.12", "1.24.13", "1.25.14", "1.26.11",
            "1.27.4"]
STRIP = ["-ldflags=-s -w"]
COMPILED = {  # build: environment, flags
    "plain": ({"CGO_ENABLED": "0"}, []),
    "stripped": ({"CGO_ENABLED": "0"}, STRIP),
    "pie": ({"CGO_ENABLED": "0"}, ["-buildmode=pie"]),
    "cgo": ({"CGO_ENABLED": "1"}, []),
    "external": ({"CGO_ENABLED": "1"}, ["-buildmode=pie", "-ldflags=-linkmode=external"]),
    "embedding-whole": ({"CGO_ENABLED": "0"}, ["-tags=embedding"]),
    "arm64": ({"CGO_ENABLED": "0", "GOARCH": "arm64"}, []),
    "arm64-stripped": ({"CGO_ENABLED": "0", "GOARCH": "arm64"}, STRIP),
}
TWINS = {"stripped": "plain", "external-stripped": "external", "no-sections": "external", "zeroed": "external",
         "go1.99": "plain", "embedding": "embedding-whole", "arm64-stripped": "arm64"}  # the build that has symbols and DWARF
BUILDS = ["plain", "stripped", "pie", "cgo", "external", "external-stripped", "no-sections", "zeroed", "go1.99",
          "embedding", "arm64", "arm64-stripped"]


def command(*words, env=None, cwd=None):
    """Standard output of a command that must succeed."""
    result = subprocess.run([str(w) for w in words], capture_output=True, env=env, cwd=cwd, timeout=900, check=False)
    if result.returncode != 0:
        raise RuntimeError(f"{words[0]} {words[-1]}: {result.stderr.decode(errors='replace').strip()[-400:]}")
    return result.stdout


def go_environment(version=None):
    env = {**os.environ, "GOMODCACHE": str(CACHE / "mod"), "GOCACHE": str(CACHE / "build"), "GOFLAGS": "-mod=mod",
           "GODEBUG": "goindex=0"}  # -buildvcs is unknown to 1.17; the module index breaks 1.19
    if version:
        env["GOTOOLCHAIN"] = f"go{version}"
    return env


def segments(data):
    offset, size, count = struct.unpack_from("<Q", data, 32)[0], *struct.unpack_from("<HH", data, 54)
    rows = [struct.unpack_from("<IIQQQQ", data, offset + i * size) for i in range(count)]
    return [(va, off, length) for kind, _, off, va, _, length in rows if kind == 1]


def without_sections(data):
    struct.pack_into("<Q", data, 40, 0)
    struct.pack_into("<HHH", data, 58, 0, 0, 0)


def with_zeros(data):
    """Clears each word that a RELATIVE relocation fills in."""
    offset, size = struct.unpack_from("<Q", data, 40)[0], struct.unpack_from("<H", data, 58)[0]
    loads, cleared = segments(data), 0
    for i in range(struct.unpack_from("<H", data, 60)[0]):
        _, kind, _, _, start, length = struct.unpack_from("<IIQQQQ", data, offset + i * size)
        if kind != 4:
            continue
        for at in range(start, start + length, 24):
            address, info = struct.unpack_from("<QQ", data, at)
            if info & 0xffffffff == 8:
                place = next(address - va + off for va, off, n in loads if va <= address < va + n)
                struct.pack_into("<Q", data, place, 0)
                cleared += 1
    if cleared < 10000:
        raise RuntimeError(f"only {cleared} words to clear")


def with_other_version(data, version):
    old = f"go{version}".encode()
    new = b"go1.99" + (b"." + b"9" * (len(old) - 7) if len(old) > 6 else b"")
    if old not in data:
        raise RuntimeError("no version to patch")
    data[:] = data.replace(old, new)


def prefix_of(source):
    """What the names of its programs begin with; those of what it was before are removed."""
    if source == APP:
        return ""
    sum_of = hashlib.sha256(b"".join(p.read_bytes() for p in sorted(source.iterdir()))).hexdigest()[:8]
    for old in (CACHE / "bin").glob(f"{source.name}-*"):
        if not old.name.startswith(f"{source.name}-{sum_of}-"):
            old.unlink(missing_ok=True)
    return f"{source.name}-{sum_of}-"


def program(version, build, source=APP):
    """The path of a program; it is made if need be."""
    path = CACHE / "bin" / f"{prefix_of(source)}{version}-{build}"
    if path.exists():
        return path
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_suffix(".new")
    if build in COMPILED:
        env, flags = COMPILED[build]
        if build == "embedding-whole":
            source = CACHE / "embedding"
            shutil.copytree(APP, source, dirs_exist_ok=True)
            shutil.copy(program("1.22.12" if version != "1.22.12" else "1.21.13", "plain"), source / "embedded")
        command("go", "build", "-p", "2", *flags, "-o", new, ".", env={**go_environment(version), **env}, cwd=source)
    elif build == "external-stripped":
        command("strip", "-o", new, program(version, "external", source))
    else:
        data = bytearray(program(version, TWINS[build], source).read_bytes())
        if build in ("no-sections", "embedding"):
            without_sections(data)
        elif build == "zeroed":
            with_zeros(data)
        else:
            with_other_version(data, version)
        new.write_bytes(data)
        new.chmod(0o755)
    new.rename(path)
    return path


