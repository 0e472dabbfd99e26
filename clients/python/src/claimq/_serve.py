"""Takes tasks from `claimq work --serve`: the protocol of docs/protocol.md, "Served programs".

One event loop reads and writes the socket. Handlers that are an async def run on it, others
in threads. They may print freely, because the socket is not a standard stream.
"""

from __future__ import annotations

import asyncio
import base64
import contextvars
import json
import logging
import os
import platform
import signal
import socket
import threading
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from ._app import App
from ._context import Context, Reason
from ._json import NotJSON, encode
from ._outcome import Done, Failed, Handler, Outcome, perform, perform_async, result
from ._task import milliseconds

logger = logging.getLogger("claimq")

PROTOCOL = 1

LIMITS: Mapping[str, int] = {
    "line_bytes": 8 << 20,
    "value_bytes": 1 << 20,
    "error_bytes": 16 << 10,
    "progress_bytes": 4 << 10,
}
"""Bounds of a worker's messages, in bytes, until claimq has sent its own."""

ENV_FD, ENV_SOCKET = "CLAIMQ_FD", "CLAIMQ_SOCKET"


_Key = tuple[int, int]  # of a task: its id and its token


class ProtocolError(Exception):
    """claimq sent what this side does not understand."""


def connect() -> socket.socket | None:
    """Return the socket to claimq; None without one.

    The variables that name it are taken out of the environment: it is not the socket of what
    handlers start.

    Raises:
        ValueError: The variable names no socket.
    """
    fd, path = os.environ.pop(ENV_FD, ""), os.environ.pop(ENV_SOCKET, "")
    if fd:
        try:
            sock = socket.socket(fileno=int(fd))
        except (ValueError, OSError) as e:
            raise ValueError(
                f"{ENV_FD} is {fd!r}: it must be the descriptor of a socket: {e}"
            ) from e
        sock.set_inheritable(False)
        return sock
    if path:
        sock = socket.socket(socket.AF_UNIX)
        try:
            sock.connect(path.removeprefix("unix:"))
        except OSError as e:
            sock.close()
            raise ValueError(
                f"{ENV_SOCKET} is {path!r}: it must be the socket of a claimq work --serve"
                f" --listen that runs: {e}"
            ) from e
        return sock
    return None


def serve(app: App, sock: socket.socket, *, signals: bool = False) -> bool:
    """Work until claimq says stop, or closes the socket.

    Args:
        app: The handlers.
        sock: The connection to claimq; it is closed.
        signals: Ignore SIGINT and SIGTERM, which a terminal and a supervisor send to claimq,
            too: claimq says when to stop.

    Returns:
        True once all is done; False if claimq closed the socket and a handler did not end in
        its time.

    Raises:
        ProtocolError: claimq sent what this side does not understand.
    """
    return asyncio.run(_Server(app, sock).run(signals))


class _Server(asyncio.Protocol):
    def __init__(self, app: App, sock: socket.socket) -> None:
        self._app = app
        self._sock = sock
        self._running: dict[_Key, tuple[Context, asyncio.Task[None] | None]] = {}
        self._limits = dict(LIMITS)
        self._grace = 5.0
        self._greeted = False
        self._pieces: list[bytes] = []  # of a line that has not ended
        self._error: Exception | None = None
        # What is to be written, by any thread.
        self._lock = threading.Lock()
        self._answers: list[tuple[_Key | None, bytes]] = []
        self._progress: dict[_Key, bytes] = {}  # the last of each task
        self._woken = False  # _flush will run, or what waits is written by resume_writing
        self._paused = False  # the socket takes no more

    async def run(self, signals: bool) -> bool:
        self._loop = asyncio.get_running_loop()
        self._thread = threading.get_ident()
        self._idle = asyncio.Event()  # set while no handler runs
        self._idle.set()
        self._ended = asyncio.Event()  # claimq said stop, or is gone
        self._lost = asyncio.Event()
        if signals:
            for number in (signal.SIGINT, signal.SIGTERM):
                self._loop.add_signal_handler(number, lambda: None)
        self._threads = ThreadPoolExecutor(self._app.concurrency, "claimq")
        self._transport, _ = await self._loop.create_unix_connection(
            lambda: self, sock=self._sock
        )
        self._put({"kind": "hello"} | self._hello())
        try:
            await self._ended.wait()
            if self._lost.is_set():
                return await self._abandon()
            lost = asyncio.create_task(self._lost.wait())
            idle = asyncio.create_task(self._idle.wait())
            await asyncio.wait([lost, idle], return_when=asyncio.FIRST_COMPLETED)
            if not idle.done():
                return await self._abandon()
            self._transport.close()  # once all is written
            await lost
            return True
        finally:
            self._transport.abort()
            self._threads.shutdown(wait=False, cancel_futures=True)

    def _hello(self) -> dict[str, Any]:
        served: list[dict[str, Any]] = []
        for task in self._app.tasks.values():
            one: dict[str, Any] = {"type": task.type}
            if task.concurrency is not None:
                one["concurrency"] = task.concurrency
            if task.timeout is not None:
                one["timeout_ms"] = milliseconds(task.timeout)
            served.append(one)
        return {
            "protocol": PROTOCOL,
            "types": served,
            "concurrency": self._app.concurrency,
            "client": f"claimq-python, Python {platform.python_version()}",
        }

    async def _abandon(self) -> bool:
        """Stop all handlers: claimq has gone, and nothing that they say counts any more."""
        if self._error is not None:
            raise self._error
        for key in list(self._running):
            self._cancel(key, "shutdown")
        try:
            await asyncio.wait_for(self._idle.wait(), self._grace)
        except TimeoutError:
            return False
        return True

    # Reading.

    def data_received(self, data: bytes) -> None:
        *lines, rest = data.split(b"\n")
        if lines:
            lines[0] = b"".join([*self._pieces, lines[0]])
            self._pieces = []
        if rest:
            self._pieces.append(rest)
        for line in lines:
            try:
                self._take(line)
            except Exception as e:
                self._error = ProtocolError(f"claimq sent {line[:200]!r}: {e!r}")
                self._lost.set()
                self._ended.set()
                self._transport.abort()
                return

    def connection_lost(self, exc: Exception | None) -> None:
        self._lost.set()
        self._ended.set()
        self.resume_writing()

    def _take(self, line: bytes) -> None:
        message = json.loads(line.decode())  # of bytes it would look for their encoding first
        kind = message["kind"]
        if kind == "task":
            self._begin(message)
        elif kind == "cancel":
            self._cancel((message["id"], message["token"]), message["why"])
        elif kind == "stop":
            self._ended.set()
        elif kind == "hello" and not self._greeted:
            if message["protocol"] != PROTOCOL:
                raise ProtocolError(f"it speaks protocol {message['protocol']}, not {PROTOCOL}")
            self._greeted = True
            self._limits.update(message["limits"])
            self._grace = message["grace_ms"] / 1000
        else:
            raise ProtocolError(f"the kind {kind!r} is unknown here")

    def _begin(self, m: dict[str, Any]) -> None:
        key = (m["id"], m["token"])
        task = self._app.tasks[m["type"]]
        dependencies: dict[str, dict[str, Any]] = m.get("dependencies") or {}
        payload = base64.b64decode(m["payload"]) if "payload" in m else None
        timeout = m.get("timeout_ms")
        context = Context(
            id=m["id"],
            token=m["token"],
            type=m["type"],
            attempt=m["attempt"],
            labels=m.get("labels") or {},
            attributes=m.get("attributes") or {},
            signal=m.get("signal"),
            payload=payload,
            traceparent=m.get("traceparent"),
            parent_id=m.get("parent_id"),
            step=m.get("step"),
            dependencies={name: result(value) for name, value in dependencies.items()},
            dependencies_left_out=m.get("dependencies_left_out", False),
            deadline=time.monotonic() + timeout / 1000 if timeout else None,
        )
        context._report = lambda value: self._report(key, value)
        params = m.get("params", {})  # a task with a payload has none, but current().payload
        self._idle.clear()
        if task.is_async:
            coroutine = self._perform(key, task, context, params)
            self._running[key] = context, self._loop.create_task(coroutine)
            return
        self._running[key] = context, None
        self._threads.submit(self._perform_in_thread, key, task, context, params)

    def _cancel(self, key: _Key, why: Reason) -> None:
        running = self._running.get(key)
        if running is None:  # its answer is under way
            return
        context, job = running
        if context.reason is None:
            context._stop(why)
            if job is not None:
                job.cancel()

    # Working.

    async def _perform(
        self, key: _Key, task: Handler, context: Context, params: object
    ) -> None:
        try:
            outcome = await perform_async(task, context, params)
        except asyncio.CancelledError as e:  # before its first step
            outcome = Failed(f"told to stop: {context.reason}", e)
        self._answer(key, outcome)

    def _perform_in_thread(
        self, key: _Key, task: Handler, context: Context, params: object
    ) -> None:
        # Context variables that a handler sets are gone with it, not there for the next.
        outcome = contextvars.Context().run(perform, task, context, params)
        self._answer(key, outcome)

    def _answer(self, key: _Key, outcome: Outcome) -> None:
        """Queue the answer of a task, made by the thread that had it."""
        line = answer(key, outcome, self._limits)
        with self._lock:
            self._answers.append((key, line))
            self._wake_up()

    def _report(self, key: _Key, value: Any) -> None:
        named = b'"id":%d,"token":%d' % key
        line = b'{"kind":"progress",%s,"progress":%s}\n' % (named, progress(value, self._limits))
        with self._lock:
            self._progress[key] = line
            self._wake_up()

    # Writing.

    def _put(self, message: Mapping[str, Any]) -> None:
        with self._lock:
            self._answers.append((None, encode(message) + b"\n"))
            self._wake_up()

    def _wake_up(self) -> None:
        """Have what waits be written, soon; the caller holds the lock."""
        if self._woken:
            return
        self._woken = True
        if threading.get_ident() == self._thread:
            self._loop.call_soon(self._flush)
        else:
            self._loop.call_soon_threadsafe(self._flush)

    def pause_writing(self) -> None:
        self._paused = True

    def resume_writing(self) -> None:
        self._paused = False
        self._flush()

    def _flush(self) -> None:
        """Write what waits. While the socket takes no more, only the last progress of each
        task is kept."""
        if self._paused:
            return
        with self._lock:
            self._woken = False
            progress, self._progress = self._progress, {}
            answers, self._answers = self._answers, []
        lines = [*progress.values(), *(line for _, line in answers)]
        if lines and not self._transport.is_closing():
            self._transport.write(b"".join(lines))
        for key, _ in answers:
            if key is not None:
                self._running.pop(key, None)
        if not self._running:
            self._idle.set()


def answer(key: _Key, outcome: Outcome, limits: Mapping[str, int]) -> bytes:
    """Return the line that answers a task; what claimq would not take fails for good."""
    try:
        line = _line(key, outcome, limits)
        if len(line) <= limits["line_bytes"]:
            return line
        why = f"the answer has {len(line)} bytes, at most {limits['line_bytes']}"
    except NotJSON as e:
        why = f"what the handler returned is no JSON: {e}"
    except _TooLarge as e:
        why = str(e)
    return _line(key, Failed(why, ValueError(why), permanent=True), limits)


def _line(key: _Key, outcome: Outcome, limits: Mapping[str, int]) -> bytes:
    named = b'"id":%d,"token":%d' % key
    if isinstance(outcome, Done):
        # In this form claimq reads it fastest.
        return b'{"kind":"done",%s%s}\n' % (named, _done(outcome, limits["value_bytes"]))
    if isinstance(outcome, Failed):
        fields = b',"error":' + encode(cut(outcome.error, limits["error_bytes"]))
        if outcome.permanent:
            fields += b',"permanent":true'
        if outcome.retry_in is not None:
            fields += b',"retry_in_ms":%d' % milliseconds(outcome.retry_in)
        return b'{"kind":"fail",%s%s}\n' % (named, fields)
    return b'{"kind":"snooze",%s,"ms":%d}\n' % (named, milliseconds(outcome.seconds))


def _done(outcome: Done, most: int) -> bytes:
    """Return the fields of what a handler returned, with a comma before each."""
    result, fields, size = outcome.result, b"", 0
    if isinstance(result, (bytes, bytearray)):
        size = len(result)
        fields = b',"result_payload":"%s"' % base64.b64encode(result)
    elif result is not None:
        data = encode(result, "result")
        size = len(data)
        fields = b',"result":' + data
    if size > most:
        raise _TooLarge(f"the result has {size} bytes, at most {most}")
    if outcome.follow_ups:
        fields += b',"submit":' + encode(list(outcome.follow_ups), "follow-ups")
    if outcome.steps:
        fields += b',"steps":' + encode(list(outcome.steps), "steps")
    return fields


def progress(value: Any, limits: Mapping[str, int]) -> bytes:
    """Return progress as JSON. Raises ValueError for what claimq would not take."""
    data = encode(value, "progress")
    most = limits["progress_bytes"]
    if value is None or len(data) > most:
        raise ValueError(f"progress has {len(data)} bytes of JSON: it must be 1 to {most}")
    return data


class _TooLarge(Exception):
    """A result that claimq would not take."""


def cut(error: str, most: int) -> str:
    """Return an error cut to that many bytes: its beginning, with the message, and its end,
    with the location."""
    data = error.encode("utf-8", "replace").replace(b"\x00", b"\\x00")
    if len(data) > most:
        mark = b"\n...\n"
        head = most // 4
        tail = most - head - len(mark)
        data = data[:head] + mark + data[len(data) - tail :]
        return data.decode("utf-8", "ignore")
    return data.decode("utf-8")
