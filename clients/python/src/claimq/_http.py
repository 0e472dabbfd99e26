"""Connections of Client: http.client over sockets that keep to a deadline."""

from __future__ import annotations

import http.client
import io
import os
import select
import socket
import ssl
import threading
import time
from collections.abc import Callable
from typing import Any, cast
from urllib.parse import urlsplit

from ._core import ANSWER_MAX, LINE_MAX, Failure, Open, Opened, Reply, Send

CONNECT_MAX = 3.0
"""Seconds for a connection, and as many again for its TLS handshake."""

IDLE_MAX = 30.0
"""Seconds for which an idle connection is kept. It is below the server's own bound, so that
a request is seldom sent on a connection that the server is just closing."""

IDLE_CONNECTIONS = 64
"""Bounds the idle connections to one node."""

UNTRUSTED = (
    "BAD_CERTIFICATE",
    "CERTIFICATE_EXPIRED",
    "CERTIFICATE_REQUIRED",
    "CERTIFICATE_REVOKED",
    "CERTIFICATE_UNKNOWN",
    "UNKNOWN_CA",
    "UNSUPPORTED_CERTIFICATE",
)
"""How the alerts of TLS about a client's certificate end in OpenSSL."""


def untrusted(error: BaseException) -> bool:
    """Report whether error is the server's word that it does not take this client's
    certificate. In TLS 1.3 it comes in place of an answer, but the server has read nothing."""
    if not isinstance(error, ssl.SSLError):
        return False
    reason = error.reason or ""
    return "ALERT" in reason and reason.endswith(UNTRUSTED)


def keep_alive(sock: socket.socket) -> None:
    """Set up a connection to send at once, and to find a machine that is gone within 8 s."""
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in (("TCP_KEEPIDLE", 4), ("TCP_KEEPINTVL", 2), ("TCP_KEEPCNT", 2)):
        if hasattr(socket, option):
            sock.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)


class _Socket(io.RawIOBase):
    """A socket each of whose operations ends at a deadline, which can be moved."""

    def __init__(self, sock: socket.socket) -> None:
        super().__init__()
        self.sock = sock
        self.deadline = 0.0

    def _left(self) -> float:
        left = self.deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError("no answer in time")
        return left

    # What http.client uses of a socket.

    def sendall(self, data: bytes) -> None:
        self.sock.settimeout(self._left())
        self.sock.sendall(data)

    def makefile(self, mode: str) -> io.BufferedReader:
        return io.BufferedReader(self, 1 << 16)

    # What a reader uses of a file.

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        self.sock.settimeout(self._left())
        try:
            return self.sock.recv_into(buffer)
        except TimeoutError:
            raise TimeoutError("no answer in time") from None

    def close(self) -> None:
        # http.client closes the file of each answer; the connection is closed by its pool.
        pass


class _Response(http.client.HTTPResponse):
    """An answer behind any number of interim ones; http.client knows 100 alone."""

    def _read_status(self) -> tuple[str, int, str]:
        while True:
            read = super()._read_status  # type: ignore[misc]
            line = cast("tuple[str, int, str]", read())
            _, status, _ = line
            if not 101 < status < 200:
                return line
            while self.fp.readline(LINE_MAX) not in (b"\r\n", b"\n", b""):
                pass


class _Connection:
    def __init__(self, origin: tuple[str, str, int], sock: socket.socket) -> None:
        self.origin = origin
        self.socket = _Socket(sock)
        self.since = 0.0
        _, host, port = origin
        self.http = http.client.HTTPConnection(host, port)
        self.http.response_class = _Response
        self.http.auto_open = 0
        self.http.sock = self.socket

    def is_fresh(self) -> bool:
        """Report whether an idle connection can be used: the server has not closed it."""
        if time.monotonic() - self.since > IDLE_MAX:
            return False
        try:
            poll = select.poll()
            poll.register(self.socket.sock, select.POLLIN)
            return not poll.poll(0)
        except (OSError, ValueError):
            return False

    def close(self) -> None:
        self.socket.sock.close()


class Transport:
    """The connections of one client. Threads may share it: each call has its own."""

    def __init__(self, tls: Callable[[], ssl.SSLContext]) -> None:
        """Take what returns the context for https."""
        self._tls = tls
        self._lock = threading.Lock()
        self._idle: dict[tuple[str, str, int], list[_Connection]] = {}
        self._pid = os.getpid()
        self._closed = False

    def close(self) -> None:
        """Close the idle connections; those in use are closed as their calls end."""
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, {}
        for connections in idle.values():
            for c in connections:
                c.close()

    def send(self, send: Send) -> Reply | Failure:
        """Make one try."""
        connection: _Connection | None = None
        keep = False
        sent = False
        try:
            connection = self._take(send)
            sent = True
            response = self._request(connection, send)
            if isinstance(response, Failure):
                return response
            body = _read(response)
            if body is None:
                return Failure(ValueError("the answer is too large"), True, final=True)
            keep = not response.will_close
            return _reply(response, body)
        except (OSError, http.client.HTTPException, ValueError) as e:
            return Failure(e, sent and not untrusted(e))
        finally:
            if connection is not None:
                self._give(connection, keep)

    def open(self, send: Open) -> tuple[Opened | Reply | Failure, Lines | None]:
        """Open a stream; return its lines if it is one."""
        connection: _Connection | None = None
        try:
            connection = self._take(send)
            response = self._request(connection, send)
            if isinstance(response, Failure):
                connection.close()
                return response, None
            kind = response.headers.get_content_type()
            if response.status == 200 and kind == "text/event-stream":
                return Opened(), Lines(connection, response)
            body = _read(response)
            connection.close()
            return _reply(response, body or b""), None
        except (OSError, http.client.HTTPException, ValueError) as e:
            if connection is not None:
                connection.close()
            return Failure(e, False), None

    def _request(
        self, connection: _Connection, send: Send
    ) -> http.client.HTTPResponse | Failure:
        began = time.monotonic()
        connection.socket.deadline = began + send.timeout
        connection.http.request(send.method, send.target, send.body, dict(send.headers))
        head = time.monotonic() + send.head_timeout
        connection.socket.deadline = min(head, began + send.timeout)
        response = connection.http.getresponse()
        connection.socket.deadline = began + send.timeout
        return response

    def _take(self, send: Send) -> _Connection:
        parts = urlsplit(send.base)
        port = parts.port or (443 if parts.scheme == "https" else 80)
        origin = (parts.scheme, parts.hostname or "", port)
        while True:
            with self._lock:
                if self._pid != os.getpid():  # after a fork they are the parent's
                    self._pid, self._idle = os.getpid(), {}
                idle = self._idle.get(origin)
                connection = idle.pop() if idle else None
            if connection is None:
                return self._connect(origin, send.timeout)
            if connection.is_fresh():
                return connection
            connection.close()

    def _connect(self, origin: tuple[str, str, int], timeout: float) -> _Connection:
        scheme, host, port = origin
        limit = min(CONNECT_MAX, timeout)
        sock = socket.create_connection((host, port), limit)
        try:
            keep_alive(sock)
            if scheme == "https":
                sock = self._tls().wrap_socket(sock, server_hostname=host)
        except BaseException:
            sock.close()
            raise
        return _Connection(origin, sock)

    def _give(self, connection: _Connection, keep: bool) -> None:
        connection.since = time.monotonic()
        with self._lock:
            idle = self._idle.setdefault(connection.origin, [])
            keep = keep and not self._closed and len(idle) < IDLE_CONNECTIONS
            if keep:
                idle.append(connection)
        if not keep:
            connection.close()


class Lines:
    """The lines of a stream."""

    def __init__(self, connection: _Connection, response: http.client.HTTPResponse) -> None:
        """Take the connection, which close() closes."""
        self._connection = connection
        self._response = response

    def read(self, timeout: float) -> bytes | Failure:
        """Return the next line, b"" at the end."""
        self._connection.socket.deadline = time.monotonic() + timeout
        try:
            return self._response.readline(LINE_MAX)
        except (OSError, http.client.HTTPException, ValueError) as e:
            return Failure(e, True)

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()


def _read(response: http.client.HTTPResponse) -> bytes | None:
    """Return the body; None if it is too large."""
    if response.length is not None:
        return response.read() if response.length <= ANSWER_MAX else None
    body = response.read(ANSWER_MAX + 1)
    return body if len(body) <= ANSWER_MAX else None


def _reply(response: http.client.HTTPResponse, body: bytes) -> Reply:
    return Reply(response.status, {k.lower(): v for k, v in response.getheaders()}, body)
