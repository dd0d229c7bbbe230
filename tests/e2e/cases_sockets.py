"""Sockets of every kind, and processes that inherit, pass or reuse what others had: spans have the true process."""

import http.client
import json
import os
import pathlib
import signal
import socket
import subprocess
import time

import apps
import judge
from cases_chains import chain_hops, need
from containers import descendant
from harness import Skip, expect, expect_true, scaled, wait_until
from judge import Expected, expand
from wire import Wire

LAST_PID = pathlib.Path("/proc/sys/kernel/ns_last_pid")


def ask_pid(wire, path):
    """One exchange with a server that answers with its pid."""
    start = time.time_ns()
    wire.send(wire.head(path))
    status, body = wire.response()
    expect(status == 200, f"{path}: status {status}")
    return Expected(request=path, kind="server", path=path, pid=int(body), outer=(start, time.time_ns()))


def workers_case(run, mode, connections, requests=3):
    """Each connection's requests, judged by the process that says it served them."""
    master = run.app("workers", apps.python("workers.py", mode, "{port}", "{log}"), log=False)
    daemon = run.daemon()
    expected = []
    for i in range(connections):
        with Wire(master.port) as wire:
            expected += [ask_pid(wire, f"/{mode}/{i}-{j}") for j in range(requests)]
    time.sleep(1.2)
    spans = daemon.finish()
    return spans, expected, daemon


def case_fork_for_each_connection(run):
    """A child for each connection, forked after accept(): every request is a span of the child that served it."""
    spans, expected, _ = workers_case(run, "fork", 20)
    return expect_true(spans, expected) + f"; {len({e.pid for e in expected})} processes"


def case_connections_passed(run):
    """A worker that is handed accepted connections (SCM_RIGHTS): the spans are the worker's."""
    spans, expected, _ = workers_case(run, "pass", 10)
    return expect_true(spans, expected)


def case_sockets_duplicated(run):
    """A connection read by a dup'ed descriptor in another thread."""
    spans, expected, _ = workers_case(run, "dup", 10)
    return expect_true(spans, expected)
