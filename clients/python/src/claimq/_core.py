"""The logic of every call, without I/O.

A call is a generator. It yields what is to be done (Send, Sleep, ...), is sent the outcome,
and returns the answer or raises a ClaimqError. Client and AsyncClient drive it, each with
its own connections: so the rules of repeats exist once.
"""

from __future__ import annotations

import json
import logging
import random
import secrets
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any, TypeVar, Union, cast
from urllib.parse import urlsplit

from . import _repeat
from ._nodes import Nodes
from ._repeat import Action, Verdict
from .errors import (
    ClaimqError,
    NotAuthorized,
    NotAvailable,
    OutcomeUnknown,
    RateLimited,
    family,
)
from .types import STATUS

logger = logging.getLogger("claimq")

TRY_MIN = 0.1
TRY_MAX = 30.0
"""A try gets half of the call's remaining time, within these bounds, so that a node that hangs
leaves time for another."""

HEAD_MAX = 5.0
"""How long a node that got a request may stay silent, unless the request lets it."""

WAIT_GRACE = 3.0
"""How much longer than the server may hold it back an answer takes at most."""

STREAM_SILENCE = 9.0
"""How long a node may say nothing on a stream: it sends a comment every 3 s."""

ANSWER_MAX = 24 << 20
"""Bounds the bytes of an answer; the server's own bound is below."""

LINE_MAX = 1 << 20
"""Bounds one line of a stream."""


@dataclass(frozen=True)
class Request:
    """A call of the HTTP API."""

    method: str
    path: str  # as /api/tasks?limit=10, percent-encoded
    body: bytes | None = None
    repeatable: bool = True  # of what is no GET
    wait: float = 0.0  # for how long the server may hold its answer back


@dataclass(frozen=True)
class Send:
    """Send a request, and report a Reply or a Failure."""

    base: str  # of the node, as http://127.0.0.1:7400
    method: str
    target: str  # what stands in the request line
    headers: Mapping[str, str]
    body: bytes | None
    head_timeout: float  # seconds until the answer must have begun
    timeout: float  # seconds until it must be there as a whole


@dataclass(frozen=True)
class Open(Send):
    """Send a request whose answer is a stream, and report Opened, a Reply or a Failure. The
    stream that was open before is closed."""


@dataclass(frozen=True)
class ReadLine:
    """Read a line of the stream, and report it (b"" at its end) or a Failure."""

    timeout: float


@dataclass(frozen=True)
class Sleep:
    """Wait for this time."""

    seconds: float


@dataclass(frozen=True)
class Emit:
    """Hand an event to the one who iterates."""

    event: dict[str, Any]


@dataclass(frozen=True)
class Reply:
    """A whole answer. The names of the headers are in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True)
class Failure:
    """A try without a whole answer."""

    error: Exception
    sent: bool  # bytes of the request may have left
    final: bool = False  # a repeat would end the same way


@dataclass(frozen=True)
class Opened:
    """The stream is open."""


T = TypeVar("T")
Command = Union[Send, Sleep]
Outcome = Union[Reply, Failure, None]
Steps = Generator[Command, Outcome, T]
StreamCommand = Union[Open, ReadLine, Sleep, Emit]
StreamOutcome = Union[Reply, Failure, Opened, bytes, None]
Stream = Generator[StreamCommand, StreamOutcome, None]


@dataclass(frozen=True)
class Answer:
    """The successful answer to a call."""

    data: dict[str, Any]
    repeated: bool  # it took more than one try
    index: int  # of the log, that it reflects; 0: it does not say


@dataclass
class _Judged:
    verdict: Verdict
    error: ClaimqError | None = None  # None of a success or a redirect only
    data: dict[str, Any] | None = None
    location: str = ""
    heard: bool = False  # a whole answer came
    reason: str = ""

    @property
    def asked(self) -> float:
        return 0.0 if self.error is None else self.error.retry_after


@dataclass
class _Route:
    """Where the tries of one call go."""

    to: str = ""  # the leader that a node named, for the next try
    pass_on: bool = False  # the next try is not to ask for the leader
    unknown: set[str] = field(default_factory=set[str])  # endpoints that do not know the key

    def next(self, nodes: Nodes, now: float) -> tuple[str, bool, bool]:
        """Return the base URL, whether to ask for the leader, and whether it was named."""
        if self.to:
            to, self.to = self.to, ""
            return to, True, True
        base, redirect = nodes.pick(now)
        redirect = redirect and not self.pass_on
        self.pass_on = False
        return base, redirect, False

    def follow(self, nodes: Nodes, base: str, location: str, now: float) -> bool:
        """Take the leader that the node at base named; return False if it is of no use."""
        to = nodes.follow(base, location, now)
        self.to, self.pass_on = to or "", not to
        return to is not None

    def is_news(self, nodes: Nodes, base: str) -> bool:
        """Note that the node at base does not know the key; return False once every endpoint
        has said so."""
        if base in nodes.endpoints:
            self.unknown.add(base)
        return len(self.unknown) < len(nodes.endpoints)


class Core:
    """What the calls of one client share. Threads may share it."""

    def __init__(
        self,
        endpoints: Sequence[str],
        *,
        timeout: float,
        key: Callable[[], str],
        clock: Callable[[], float] = time.monotonic,
        rand: Callable[[], float] = random.random,
    ) -> None:
        """Take base URLs, the time that a call may take, and what returns the API key."""
        self.nodes = Nodes(endpoints)
        self.timeout = timeout
        self._key = key
        self.clock = clock
        self._random = rand

    def call(self, request: Request, timeout: float | None = None) -> Steps[Answer]:
        """Make the request until it is settled or its time is over.

        timeout bounds the whole call, in seconds; None: the client's timeout plus the request's
        wait.
        """
        state = _repeat.Call(mutation=request.method != "GET", repeatable=request.repeatable)
        limit = self.timeout + request.wait if timeout is None else timeout
        deadline = self.clock() + limit
        request_id = secrets.token_hex(8)
        route = _Route()
        before: ClaimqError | None = None  # of the try before
        refused: ClaimqError | None = None  # of the newest try that a node answered
        refused_at = 0  # which that was
        while True:
            now = self.clock()
            base, redirect, followed = route.next(self.nodes, now)
            key = self._key()
            reply = yield self._send(request, base, redirect, key, request_id, deadline - now)
            assert isinstance(reply, (Reply, Failure))
            judged = judge(request, base, reply, request_id)
            now = self.clock()
            if judged.heard:
                self.nodes.answered(base, followed)
            if isinstance(judged.error, NotAuthorized) and judged.error.status == 401:
                # The file may have a newer token by now, another node may know the key.
                if self._key() != key or route.is_news(self.nodes, base):
                    judged.verdict = Verdict.UNWRITTEN
            action = state.next(judged.verdict)
            if action is Action.FOLLOW:
                if route.follow(self.nodes, base, judged.location, now):
                    continue
                action = state.lost()
            if action is Action.TAKE:
                if judged.data is not None:
                    index = judged_index(reply)
                    return Answer(judged.data, state.tries > 1, index)
                assert judged.error is not None
                judged.error._doubted = state.doubted
                if not _repeat.decides(judged.error.status, judged.error.code):
                    raise _given_up(state, judged.error, request_id, "")
                raise judged.error
            error = judged.error or NotAvailable(
                f"{base} redirects to {judged.location!r}", request_id=request_id
            )
            if action is Action.GIVE_UP:
                raise _given_up(state, error, request_id, "")
            asked = self._leave(base, judged, now)
            if now >= deadline and before is not None and not judged.heard:
                error = before  # that this try was cut off says nothing of the server
            before = error
            if error.status:
                refused, refused_at = error, state.tries
            pause = self._pause(state, asked, deadline - now)
            if pause is None:
                if refused is not None and state.tries - refused_at < len(self.nodes.endpoints):
                    error = refused  # it says more than that another node is not there
                raise _given_up(state, error, request_id, f"given up after {limit:g} s")
            logger.debug("repeating %s %s: %s", request.method, request.path, error)
            yield Sleep(pause)

    def _send(
        self, r: Request, base: str, redirect: bool, key: str, request_id: str, left: float
    ) -> Send:
        most = WAIT_GRACE if r.wait > 0 else TRY_MAX
        timeout = r.wait + min(max((left - r.wait) / 2, TRY_MIN), most)
        headers = self._headers(key, request_id)
        if r.body is not None:
            headers["Content-Type"] = "application/json"
        if redirect:
            headers["X-Claimq-Redirect"] = "1"
        head = timeout if r.wait > 0 else min(timeout, HEAD_MAX)
        return Send(base, r.method, urlsplit(base).path + r.path, headers, r.body, head, timeout)

    def _headers(self, key: str, request_id: str) -> dict[str, str]:
        headers = {
            "Accept": "application/json",
            "User-Agent": "claimq-python",
            "X-Request-ID": request_id,
        }
        if key:
            headers["X-API-Key"] = key
        return headers

    def _leave(self, base: str, judged: _Judged, now: float) -> float:
        """Note what a try that is to be repeated says of its node; return how long to wait.

        It waits as long as the node asks only if no other node can be asked: another may know
        the leader, or not be stopping.
        """
        error = judged.error
        if judged.verdict is Verdict.REDIRECTED:
            self.nodes.shun(now)
            return 0.0
        if error is not None and judged.reason != "issuer":
            if isinstance(error, RateLimited) or error.code == "overloaded":
                return judged.asked  # another node would count alike, or pass it on
        if judged.heard:
            self.nodes.failed(base, now)
        else:
            self.nodes.silent(base, now)
        if judged.asked > 0:
            self.nodes.hold(base, judged.asked, now)
        return self.nodes.wait(now)

    def _pause(self, state: _repeat.Call, asked: float, left: float) -> float | None:
        """Return how long to wait before the next try; None if there is no time for one.

        The server may have asked for more than it takes: where there is not time for all of
        it, a quarter of what is left is waited.
        """
        least = state.pause(0.0, self._random)
        if left < least:
            return None
        pause = least + asked
        return pause if pause <= left else max(left / 4, least)

    def follow(self, path: str, after: str) -> Stream:
        """Walk the trail of events as it grows, each once and in order.

        path is the path of the events, with filters. When a connection ends it continues at
        another node from the same position; it raises what no other node would answer differently.
        """
        state = _repeat.Call(mutation=False, repeatable=True)
        route = _Route()
        while True:
            base, _ = self.nodes.pick(self.clock())
            key = self._key()
            request_id = secrets.token_hex(8)
            headers = self._headers(key, request_id)
            headers["Accept"] = "text/event-stream"
            target = urlsplit(base).path + path
            if after:
                target += ("&" if "?" in path else "?") + "after=" + after
            opened = yield Open(base, "GET", target, headers, None, STREAM_SILENCE, STREAM_SILENCE)
            failed: ClaimqError
            verdict = Verdict.UNWRITTEN
            if isinstance(opened, Opened):
                self.nodes.answered(base, False)
                failed, verdict, after = yield from self._read(base, after, state)
            else:
                assert isinstance(opened, (Reply, Failure))
                judged = judge(Request("GET", path), base, opened, request_id)
                verdict = judged.verdict
                failed = judged.error or ClaimqError("the answer is no stream of events")
            if isinstance(failed, NotAuthorized) and failed.status == 401:
                if self._key() != key or route.is_news(self.nodes, base):
                    verdict = Verdict.UNWRITTEN
            if verdict is Verdict.SETTLED:
                raise failed
            self.nodes.failed(base, self.clock())
            state.tries += 1
            logger.debug("following the events again after %s: %s", after or "now", failed)
            yield Sleep(state.pause(0.0, self._random))

    def _read(
        self, base: str, after: str, state: _repeat.Call
    ) -> Generator[StreamCommand, StreamOutcome, tuple[ClaimqError, Verdict, str]]:
        """Read a stream until it ends; return why it did, and the last place."""
        message: dict[str, str] = {}
        while True:
            line = yield ReadLine(STREAM_SILENCE)
            if not isinstance(line, bytes) or not line.endswith(b"\n"):
                cause = line.error if isinstance(line, Failure) else "it ended"
                error = NotAvailable(f"stream of events from {base}: {cause}")
                return error, Verdict.UNWRITTEN, after
            text = line.rstrip(b"\r\n").decode("utf-8", "replace")
            if text:
                name, _, value = text.partition(":")
                message[name] = value[1:] if value.startswith(" ") else value
                continue
            if message.get("event") == "error":
                refusal = json.loads(message.get("data") or "{}")
                code = str(refusal.get("code", ""))
                status = STATUS.get(code, 0)
                return _refusal(refusal, status, {}), _repeat.judge(status, code), after
            if message.get("data"):
                event = json.loads(message["data"])
                after = f"{event['index']}.{event['sub']}"
                state.tries = 0
                yield Emit(event)
            elif message.get("id"):
                after = message["id"]  # a place without an event: nothing is missed up to it
            message = {}


def judged_index(reply: Reply | Failure) -> int:
    """Return the index of the log that an answer reflects, 0 if it does not say."""
    if isinstance(reply, Failure):
        return 0
    value = reply.headers.get("x-claimq-index", "")
    return int(value) if value.isdecimal() else 0


def judge(request: Request, base: str, reply: Reply | Failure, request_id: str) -> _Judged:
    """Decide what one try came to."""
    if isinstance(reply, Failure):
        error: ClaimqError
        if reply.final:
            kind = ClaimqError if request.method == "GET" else OutcomeUnknown
            error = kind(f"{base}: {reply.error}", request_id=request_id)
            verdict = Verdict.SETTLED
        else:
            error = NotAvailable(f"{base}: {_reason(reply.error)}", request_id=request_id)
            verdict = _repeat.broken(reply.sent)
        error.__cause__ = reply.error
        return _Judged(verdict, error, heard=reply.final)
    data = _object(reply.body)
    status = reply.status
    if 200 <= status < 300 and data is not None and data.get("success") is True:
        return _Judged(Verdict.SETTLED, data=data, heard=True)
    location = reply.headers.get("location", "")
    if status == HTTPStatus.TEMPORARY_REDIRECT and location.endswith(request.path):
        return _Judged(Verdict.REDIRECTED, location=location, heard=True)
    if data is None or not _is_ours(data):
        data = {}  # a proxy's: what it has in its fields is not what we mean by them
    if status < 400:
        told = f"status {status}" + (f" to {location!r}" if status >= 300 else "")
        error = ClaimqError(
            f"the answer of {base} is not claimq's: {told}", status=status, request_id=request_id
        )
        return _Judged(_repeat.judge(status, ""), error, heard=True)
    error = _refusal(data, status, reply.headers)
    error.request_id = error.request_id or request_id
    verdict = _repeat.judge(status, error.code)
    return _Judged(verdict, error, heard=True, reason=str(data.get("reason", "")))


def _object(body: bytes) -> dict[str, Any] | None:
    try:
        data = json.loads(body)
    except (ValueError, RecursionError):
        return None
    return cast("dict[str, Any]", data) if isinstance(data, dict) else None


def _is_ours(data: Mapping[str, Any]) -> bool:
    """Report whether a refusal is a node's: it has a code that is known here, or, of a later
    version, all that a refusal has."""
    code = data.get("code")
    if not isinstance(code, str) or not code:
        return False
    return code in STATUS or bool(data.get("error") and data.get("request_id"))


def _refusal(data: Mapping[str, Any], status: int, headers: Mapping[str, str]) -> ClaimqError:
    code = str(data.get("code", ""))
    phrase = HTTPStatus(status).phrase if status in HTTPStatus._value2member_map_ else ""
    return family(code, status)(
        str(data.get("error", "")) or phrase or "refused",
        code=code,
        advice=str(data.get("message", "")),
        status=status,
        request_id=str(data.get("request_id", "")),
        field=str(data.get("field", "")),
        retry_after=_retry_after(headers.get("retry-after", "")),
        details=data,
    )


def _retry_after(value: str) -> float:
    """Return the header's seconds; the form with a date is not claimq's."""
    if not value.isdecimal() or len(value) > 5 or int(value) > 86_400:
        return 0.0
    return float(value)


def _reason(error: Exception) -> str:
    return str(error) or type(error).__name__


def _given_up(
    state: _repeat.Call, last: ClaimqError, request_id: str, why: str
) -> ClaimqError:
    """Make the error of a call that was not settled."""
    if why:
        last.message += f", {why} and {state.tries} {'try' if state.tries == 1 else 'tries'}"
    if not state.doubted or isinstance(last, OutcomeUnknown):
        return last
    error = OutcomeUnknown(
        f"it may have been done: {last}",
        code="outcome_unknown",
        status=last.status,
        request_id=last.request_id or request_id,
        retry_after=last.retry_after,
    )
    error.__cause__ = last
    return error
