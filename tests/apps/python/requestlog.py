"""The Python services' own record of what they did, for the judge of the end-to-end tests.

One JSON object a line: id, role (server|client), path, status, start, end; times in nanoseconds of the wall
clock. A server's interval lies inside the exchange, a client's lies around it. Written when SIGTERM ends the
process: text files are not safe to share between threads, list.append is.
"""

import atexit
import json
import signal
import sys
import zlib


class RequestLog:
    def __init__(self, name):
        self.name = name
        self.records = []
        atexit.register(self.save)
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))

    def write(self, role, path, status, start, end):
        self.records.append({"id": request_id(path), "role": role, "path": path, "status": status, "start": start,
                             "end": end})

    def save(self):
        with open(self.name, "w", encoding="utf-8") as out:
            for record in list(self.records):
                out.write(json.dumps(record) + "\n")


def request_id(path):
    return path.rsplit("/", 1)[1].split("?", 1)[0]


def status_of(path):
    """The status a backend answers with: it follows from the id, so that a neighbour's status shows."""
    return {3: 404, 7: 201, 11: 500}.get(zlib.crc32(request_id(path).encode()) % 16, 200)
