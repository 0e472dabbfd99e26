"""Connections of AsyncClient: HTTP/1.1 over the streams of asyncio."""

from __future__ import annotations

import asyncio
import socket
import ssl
import string
import time
from collections.abc import AsyncIterator, Callable
from urllib.parse import urlsplit

from ._core import ANSWER_MAX, LINE_MAX, Failure, Open, Opened, Reply, Send
from ._http import CONNECT_MAX, IDLE_CONNECTIONS, IDLE_MAX, keep_alive, untrusted

HEAD_LINES_MAX = 100
"""Bounds the headers of an answer."""

_ERRORS = (OSError, EOFError, ValueError)


class _Connection:
    def __init__(
        self,
        origin: tuple[str, str, int],
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> None:
        self.origin = origin
        self.reader = reader
        self.writer = writer
        self.since = 0.0

    def is_fresh(self) -> bool:
        """Report whether an idle connection can be used: the server has not closed it."""
        if self.writer.is_closing() or self.reader.at_eof():
            return False
        return time.monotonic() - self.since <= IDLE_MAX

    def close(self) -> None:
        self.writer.transport.abort()


class _Head:
    """The status and headers of an answer, and how its body is delimited."""

    def __init__(self, version: str, status: int, headers: dict[str, str]) -> None:
        self.status = status
        self.headers = headers
        self.chunked = "chunked" in headers.get("transfer-encoding", "").lower()
        length = headers.get("content-length")
        if length is not None and not length.isdecimal():
            raise ValueError(f"Content-Length is {length!r}")
        self.length = int(length) if length is not None and not self.chunked else None
        if status == 204 or status == 304:
            self.chunked, self.length = False, 0
        connection = headers.get("connection", "").lower()
        has_end = self.chunked or self.length is not None
        self.keep = has_end and version == "HTTP/1.1" and "close" not in connection


class Transport:
    """The connections of one client, of one event loop at a time."""

    def __init__(self, tls: Callable[[], ssl.SSLContext]) -> None:
        """Take what returns the context for https."""
        self._tls = tls
        self._loop: asyncio.AbstractEventLoop | None = None
        self._idle: dict[tuple[str, str, int], list[_Connection]] = {}
        self._closed = False

    def close(self) -> None:
        """Close the idle connections; those in use are closed as their calls end."""
        self._closed = True
        if self._loop is not None and not self._loop.is_closed():
            for connections in self._idle.values():
                for c in connections:
                    c.close()
        self._idle = {}

    async def send(self, send: Send) -> Reply | Failure:
        """Make one try."""
        connection: _Connection | None = None
        keep = False
        sent = False
        try:
            async with asyncio.timeout(send.timeout):
                connection = await self._take(send)
                sent = True
                head = await self._request(connection, send)
                body = await _read(connection.reader, head)
            if body is None:
                return Failure(ValueError("the answer is too large"), True, final=True)
            keep = head.keep
            return Reply(head.status, head.headers, body)
        except TimeoutError:
            return Failure(TimeoutError("no answer in time"), sent)
        except _ERRORS as e:
            return Failure(e, sent and not untrusted(e))
        finally:
            if connection is not None:
                self._give(connection, keep)

    async def open(self, send: Open) -> tuple[Opened | Reply | Failure, Lines | None]:
        """Open a stream; return its lines if it is one."""
        connection: _Connection | None = None
        lines: Lines | None = None
        try:
            async with asyncio.timeout(send.timeout):
                connection = await self._take(send)
                head = await self._request(connection, send)
                kind = head.headers.get("content-type", "").partition(";")[0].strip()
                if head.status == 200 and kind == "text/event-stream":
                    lines = Lines(connection, head)
                    return Opened(), lines
                body = await _read(connection.reader, head)
                return Reply(head.status, head.headers, body or b""), None
        except _ERRORS as e:
            return Failure(e, False), None
        finally:
            if connection is not None and lines is None:
                connection.close()

    async def _request(self, connection: _Connection, send: Send) -> _Head:
        _, host, port = connection.origin
        shown = f"[{host}]" if ":" in host else host
        lines = [f"{send.method} {send.target} HTTP/1.1", f"Host: {shown}:{port}"]
        lines += [f"{name}: {value}" for name, value in send.headers.items()]
        if send.body is not None or send.method != "GET":
            lines.append(f"Content-Length: {len(send.body or b'')}")
        head = "\r\n".join(lines).encode("ascii") + b"\r\n\r\n"
        connection.writer.write(head + (send.body or b""))
        await connection.writer.drain()
        async with asyncio.timeout(send.head_timeout):
            while True:
                answer = await _read_head(connection.reader)
                if answer.status >= 200:
                    return answer

    async def _take(self, send: Send) -> _Connection:
        loop = asyncio.get_running_loop()
        if loop is not self._loop:  # those of another loop are of no use here
            self._loop, self._idle = loop, {}
        parts = urlsplit(send.base)
        port = parts.port or (443 if parts.scheme == "https" else 80)
        origin = (parts.scheme, parts.hostname or "", port)
        idle = self._idle.get(origin, [])
        while idle:
            connection = idle.pop()
            if connection.is_fresh():
                return connection
            connection.close()
        return await self._connect(origin)

    async def _connect(self, origin: tuple[str, str, int]) -> _Connection:
        scheme, host, port = origin
        tls = self._tls() if scheme == "https" else None
        name = host if tls is not None else None
        async with asyncio.timeout(CONNECT_MAX if tls is None else 2 * CONNECT_MAX):
            reader, writer = await asyncio.open_connection(
                host, port, ssl=tls, server_hostname=name, limit=LINE_MAX
            )
        sock = writer.get_extra_info("socket")
        if isinstance(getattr(sock, "_sock", sock), socket.socket):
            keep_alive(getattr(sock, "_sock", sock))
        return _Connection(origin, reader, writer)

    def _give(self, connection: _Connection, keep: bool) -> None:
        connection.since = time.monotonic()
        idle = self._idle.setdefault(connection.origin, [])
        if keep and not self._closed and len(idle) < IDLE_CONNECTIONS:
            idle.append(connection)
        else:
            connection.close()


class Lines:
    """The lines of a stream."""

    def __init__(self, connection: _Connection, head: _Head) -> None:
        """Take the connection, which close() closes."""
        self._connection = connection
        self._pieces = _body(connection.reader, head)
        self._buffer = bytearray()

    async def read(self, timeout: float) -> bytes | Failure:
        """Return the next line, b"" at the end."""
        try:
            async with asyncio.timeout(timeout):
                while b"\n" not in self._buffer:
                    if len(self._buffer) > LINE_MAX:
                        raise ValueError("a line is too long")
                    piece = await anext(self._pieces, b"")
                    if not piece:
                        return b""
                    self._buffer += piece
        except _ERRORS as e:
            return Failure(e, True)
        end = self._buffer.index(b"\n") + 1
        line = bytes(self._buffer[:end])
        del self._buffer[:end]
        return line

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()


async def _line(reader: asyncio.StreamReader) -> str:
    line = await reader.readline()
    if not line.endswith(b"\n"):
        raise EOFError("the connection was closed")
    return line.decode("latin-1").rstrip("\r\n")


async def _read_head(reader: asyncio.StreamReader) -> _Head:
    version, _, rest = (await _line(reader)).partition(" ")
    status = rest[:3]
    if not version.startswith("HTTP/1.") or not status.isdecimal() or len(status) != 3:
        raise ValueError("the answer is no HTTP")
    headers: dict[str, str] = {}
    for _ in range(HEAD_LINES_MAX):
        line = await _line(reader)
        if not line:
            return _Head(version, int(status), headers)
        name, _, value = line.partition(":")
        headers[name.strip().lower()] = value.strip()
    raise ValueError("the answer has too many headers")


async def _read(reader: asyncio.StreamReader, head: _Head) -> bytes | None:
    """Return the body; None if it is too large."""
    body = bytearray()
    async for piece in _body(reader, head):
        body += piece
        if len(body) > ANSWER_MAX:
            return None
    return bytes(body)


async def _body(reader: asyncio.StreamReader, head: _Head) -> AsyncIterator[bytes]:
    """Yield the body piece by piece; raise EOFError if it is cut off."""
    if head.chunked:
        while True:
            digits = (await _line(reader)).partition(";")[0].strip()
            if not digits or not all(c in string.hexdigits for c in digits):
                raise ValueError("a chunk has no size")
            size = int(digits, 16)
            if size == 0:
                while await _line(reader):
                    pass  # trailers
                return
            async for piece in _exactly(reader, size):
                yield piece
            if await _line(reader):
                raise ValueError("a chunk is longer than it says")
    elif head.length is not None:
        async for piece in _exactly(reader, head.length):
            yield piece
    else:
        while piece := await reader.read(1 << 16):
            yield piece


async def _exactly(reader: asyncio.StreamReader, size: int) -> AsyncIterator[bytes]:
    while size > 0:
        piece = await reader.read(min(size, 1 << 16))
        if not piece:
            raise EOFError("the answer was cut off")
        size -= len(piece)
        yield piece
