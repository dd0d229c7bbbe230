"""An asyncio HTTP server on plain streams, one thread, that calls a backend for each request.

aio.py PORT LOG BACK_PORT: requests of all connections are in progress at once; the calls use a pool of kept-alive
connections, so that a request's call often leaves on a connection that another request opened.
"""

import asyncio
import sys
import time

from requestlog import RequestLog, request_id

LOG = RequestLog(sys.argv[2])
BACK = int(sys.argv[3])
IDLE = []


async def read_head(reader):
    """A head as (first line, headers by lower-case name); None at the end of the connection."""
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except (asyncio.IncompleteReadError, ConnectionResetError):
        return None
    first, *lines = head.decode("latin-1").split("\r\n")[:-2]
    return first, {name.strip().lower(): value.strip() for name, _, value in (l.partition(":") for l in lines)}


async def call(path):
    start = time.time_ns()
    reader, writer = IDLE.pop() if IDLE else await asyncio.open_connection("127.0.0.1", BACK)
    writer.write(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{BACK}\r\n\r\n".encode())
    first, headers = await read_head(reader)
    await reader.readexactly(int(headers["content-length"]))
    status = int(first.split()[1])
    LOG.write("client", path, status, start, time.time_ns())
    IDLE.append((reader, writer))
    return status


async def serve(reader, writer):
    while head := await read_head(reader):
        start = time.time_ns()
        path = head[0].split()[1]
        status = 200 if await call("/back/" + request_id(path)) < 500 else 502
        body = f"aio {path}\n".encode()
        LOG.write("server", path, status, start, time.time_ns())
        writer.write(f"HTTP/1.1 {status} Any\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body)
    writer.close()


async def main():
    server = await asyncio.start_server(serve, "127.0.0.1", int(sys.argv[1]), backlog=1024)
    print("ready", flush=True)
    await server.serve_forever()


asyncio.run(main())
