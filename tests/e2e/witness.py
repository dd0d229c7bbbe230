"""What the services themselves saw at the edge of their system calls, exchange by exchange (tests/apps/witness).

The harness makes the file and hands it to every service; the judge asks for the records of an exchange. Times are of
CLOCK_MONOTONIC: only how long things took is taken from here.
"""

import collections
import dataclasses
import os
import struct
import urllib.parse

FILE_BYTES = 64 << 20
HEADER_BYTES = 208
RECORD = struct.Struct("=QQQQQQQII144s")
KINDS = {1: "server", 2: "client"}


@dataclasses.dataclass
class Seen:
    """One exchange as the threads of one process measured it, with what they can prove they lost on the way."""
    measured: int        # ns
    lost: int = 0        # by which the measurement may be longer than the exchange; the thread's own account
    late: int = 0        # by which the exchange may be longer: its first bytes were there before they were noted
    pid: int | None = None


def seen(kind, pid, first, last, eof):
    """A client counts from before its first call to after its last one, a server from having the request in hand."""
    (before, after, lost), (_, end, last_lost) = first, last
    if kind == "client":
        return Seen(end - before, lost + last_lost, max(eof - end, 0), pid)
    return Seen(end - after, last_lost, lost, pid)


def paths_of(head):
    """What a request can be looked for by, as its beginning says: its path, and path and query, where it has one, in
    one word (some cases tell requests apart so); nothing if that is no HTTP/1."""
    words = head.split(b"\r\n", 1)[0].split(b" ")
    if len(words) < 2 or not words[0].isalpha():
        return set()
    target = urllib.parse.urlsplit(words[1].decode("latin-1"))
    return {target.path, target.path + target.query} - {""}


class Witness:
    """The records of one file by kind and path."""

    def __init__(self, file):
        self.exchanges = collections.defaultdict(list)
        if not os.path.exists(file):
            return
        with open(file, "rb") as records:
            used = int.from_bytes(records.read(8), "little")
            if HEADER_BYTES + used * RECORD.size > FILE_BYTES:
                raise ValueError(f"{file}: {used} records, more than there is room for")
            records.seek(HEADER_BYTES)
            for one in RECORD.iter_unpack(records.read(used * RECORD.size)):
                self.add(one)

    def add(self, one):
        first, last, (eof, role, pid, head) = one[0:3], one[3:6], one[6:]
        for path in paths_of(head) if last[1] else ():
            self.exchanges[KINDS[role], path].append(seen(KINDS[role], pid, first, last, eof))

    def find(self, kind, pid, path):
        """Of that process, if it is known here by that id (it may live in another namespace)."""
        found = self.exchanges.get((kind, path), [])
        return [one for one in found if one.pid == pid] or found


def create(file):
    with open(file, "wb") as empty:
        empty.truncate(FILE_BYTES)
    os.chmod(file, 0o666)
