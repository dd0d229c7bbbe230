"""Loads a library into a running JVM of our own user, as HotSpot's attach mechanism has it. jcmd can do that since JDK 9.

Facts: HotSpot's os/linux/vm/attachListener_linux.cpp (JDK 8).
"""

import os
import pathlib
import signal
import socket
import time


def load(pid, library, seconds=60):
    """Returns the JVM's answer, "0" and the library's own if all is well; RuntimeError if there is none."""
    place = pathlib.Path(f"/tmp/.java_pid{pid}")
    order = pathlib.Path(f"/tmp/.attach_pid{pid}")
    if not place.exists():
        order.touch()
        os.kill(pid, signal.SIGQUIT)
    end = time.monotonic() + seconds
    while not place.exists():
        if time.monotonic() > end:
            raise RuntimeError("the JVM does not listen")
        time.sleep(0.02)
    order.unlink(missing_ok=True)
    with socket.socket(socket.AF_UNIX) as jvm:
        jvm.settimeout(seconds)
        jvm.connect(str(place))
        jvm.sendall(b"".join(word.encode() + b"\0" for word in ("1", "load", str(library), "true", "")))
        return b"".join(iter(lambda: jvm.recv(4096), b"")).decode()
