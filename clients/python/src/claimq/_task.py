"""Makes the tasks that are submitted."""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import Any, Literal, TypeVar, Union

from . import _options, types
from ._json import NotJSON, encode
from .errors import Invalid

Seconds = Union[float, timedelta]
"""A length of time: a number of seconds, or a timedelta."""


@dataclass(frozen=True)
class Backoff:
    """How long a task waits after an attempt that failed.

    That is initial, then factor times as long after each further attempt, up to max. All
    are seconds, or a timedelta.
    """

    initial: Seconds
    """After the first attempt."""
    max: Seconds | None = None
    """At most so long; None: one hour, or initial if that is more."""
    factor: float = 2.0
    """1 to 1,000."""
    jitter: float = 0.2
    """Up to this share of the wait, 0 to 1, is taken off by chance, to keep tasks apart."""

    def to_api(self) -> types.Backoff:
        """Return it as the API takes it."""
        backoff: types.Backoff = {
            "initial_ms": _length("backoff.initial_ms", self.initial),
            "factor": self.factor,
            "jitter": self.jitter,
        }
        if self.max is not None:
            backoff["max_ms"] = _length("backoff.max_ms", self.max)
        return backoff


def seconds(length: Seconds) -> float:
    """Return a length of time as seconds."""
    return length.total_seconds() if isinstance(length, timedelta) else float(length)


def milliseconds(length: Seconds) -> int:
    """Return a length of time as the API takes it; a part of a millisecond counts as one.

    Raises ValueError or OverflowError for NaN and infinity.
    """
    return -int(-seconds(length) * 1000 // 1)


def _length(field: str, length: Seconds) -> int:
    """Return a length of time as the API takes it. Raises Invalid for NaN, infinity and what
    is no number."""
    try:
        return milliseconds(length)
    except (TypeError, ValueError, OverflowError):
        raise _options.refused(field, f"is {length} s: it must be a number of seconds") from None


def timestamp(time: datetime) -> str:
    """Return a time as the API takes it.

    Raises ValueError for a time without a time zone: it could be any.
    """
    if time.tzinfo is None:
        raise ValueError(f"{time!r} has no time zone: use datetime.now(timezone.utc), say")
    # In UTC, as the API takes no offset with seconds, which local times of long ago have.
    return time.astimezone(timezone.utc).isoformat()


_Value = TypeVar("_Value")
_Made = TypeVar("_Made")


def _typed(field: str, kind: str, convert: Callable[[_Value], _Made], value: _Value) -> _Made:
    """Return what convert makes of the value. Raises Invalid if that is of a type that it does
    not take; kind says which it takes."""
    try:
        return convert(value)
    except (TypeError, ValueError):
        raise _options.refused(field, f"is of a wrong type: it must be {kind}") from None


def _base64(payload: bytes) -> str:
    return base64.b64encode(payload).decode("ascii")


def _mapping(value: Mapping[str, Any]) -> dict[str, Any]:
    return dict(value)


def _list(value: Sequence[Any]) -> list[Any]:
    return list(value)


def _wait(backoff: object) -> types.Backoff:
    if not isinstance(backoff, Backoff):
        raise TypeError
    return backoff.to_api()


def _time(field: str, time: object) -> str:
    """Return a time as the API takes it. Raises Invalid for what is no datetime."""
    if not isinstance(time, datetime):
        raise _options.refused(field, "is of a wrong type: it must be a datetime")
    return timestamp(time)


def new_task(
    task_type: str,
    params: types.JSON = None,
    *,
    payload: bytes | None = None,
    key: str | None = None,
    unique: Literal["exists", "active", "replace", "window"] | None = None,
    unique_for: Seconds | None = None,
    delay: Seconds | None = None,
    run_at: datetime | None = None,
    expires_at: datetime | None = None,
    expires_again: bool | None = None,
    priority: int | None = None,
    max_attempts: int | None = None,
    lease: Seconds | None = None,
    backoff: Backoff | None = None,
    retention: Seconds | None = None,
    labels: Mapping[str, str] | None = None,
    attributes: Mapping[str, types.JSON] | None = None,
    group: str | None = None,
    share_key: str | None = None,
    wait_for_signal: Seconds | None = None,
    traceparent: str | None = None,
    steps: Sequence[types.NewStep] | None = None,
    finalize: Literal["auto", "claim"] | None = None,
    on_step_failure: Literal["fail", "continue"] | None = None,
) -> types.NewTask:
    """Make a task for Client.submit_many, a batch, or the follow-ups of a handler.

    Options that are None have the default of the task's type, else of the server.

    Args:
        task_type: The name by which workers claim.
        params: The handler's input: any JSON, up to 1 MiB. None: an object without fields.
        payload: Bytes instead of params.
        key: The idempotency key: a submit with a key that is taken adds no task, and returns
            the one that has it. Derive it from the work, for example order-17-invoice.
        unique: "exists": the key is taken while the task exists, and 10 minutes more;
            "active": only until the task ends; "replace": as "active", and a task of the
            type that waits with the key gets the new params, run_at or delay, and expires_at;
            "window": for unique_for after the submit.
        unique_for: With unique="window", how long the key is taken, in seconds, up to a day,
            whether the task is there or not.
        delay: How long the task cannot be claimed, in seconds.
        run_at: The time before which it cannot be claimed.
        expires_at: If it is not claimed by then, it fails.
        expires_again: It fails also if it waits at expires_at, or later, after a claim.
        priority: Higher is claimed first; 0 if it is not given.
        max_attempts: The task fails after this many failed claims; 0: no limit.
        lease: The time until others get the task of a dead worker, in seconds.
        backoff: The wait after a failed attempt.
        retention: The time that it is kept after its end, in seconds; 0: it is removed at once;
            negative: until it is deleted.
        labels: Up to 16, to find it by.
        attributes: An object that describes params or payload; its worker gets it unchanged.
        group: Tasks of one type and group are claimed one at a time, in order of submission.
        share_key: The share of its type's tasks that it belongs to, a tenant for example. The
            type can limit the claims of each, and let them take turns.
        wait_for_signal: It is blocked until Client.signal, and fails if no signal comes for so
            long, in seconds; of a step, once those that it depends on have completed.
        traceparent: The W3C trace context that its worker gets.
        steps: Tasks of which this one consists; see new_step.
        finalize: How a task with steps ends: "auto": by itself; "claim": by a processor.
        on_step_failure: The effect of a failed step on the others.

    Raises:
        Invalid: The server would refuse it: `field` says where, in the names of the API. So
            are params and attributes that JSON cannot represent exactly: NaN, a set, bytes,
            a key that is no str.
        ValueError: A time has no time zone, or params and payload are both given.
    """
    if params is not None and payload is not None:
        raise ValueError("params and payload are both given: give one of them")
    fields: dict[str, Any] = {"task_type": task_type}
    if payload is not None:
        if not payload:
            raise _options.refused("payload", "is empty: it must have a byte, or be left out")
        fields["payload"] = _typed("payload", "bytes", _base64, payload)
    elif params is not None or not steps:
        fields["params"] = {} if params is None else params
    if attributes is not None:
        fields["attributes"] = _typed("attributes", "a mapping", _mapping, attributes)
    for name in ("params", "attributes"):
        try:
            encode(fields.get(name), name)  # None is JSON, too
        except NotJSON as e:
            raise Invalid(str(e), code="invalid_task", field=e.path) from None
    optional = {
        "idempotency_key": key,
        "unique": unique,
        "unique_ms": None if unique_for is None else _length("unique_ms", unique_for),
        "delay_ms": None if delay is None else _length("delay_ms", delay),
        "run_at": None if run_at is None else _time("run_at", run_at),
        "expires_at": None if expires_at is None else _time("expires_at", expires_at),
        "expires_again": expires_again,
        "priority": priority,
        "max_attempts": max_attempts,
        "lease_ms": None if lease is None else _length("lease_ms", lease),
        "backoff": (
            None if backoff is None else _typed("backoff", "a Backoff", _wait, backoff)
        ),
        "retention_ms": (
            None if retention is None else max(_length("retention_ms", retention), -1)
        ),
        "labels": (
            None if labels is None else _typed("labels", "a mapping", _mapping, labels)
        ),
        "group": group,
        "share_key": share_key,
        "wait_for_signal_ms": (
            None if wait_for_signal is None else _length("wait_for_signal_ms", wait_for_signal)
        ),
        "traceparent": traceparent,
        "steps": (
            None if steps is None else _typed("steps", "a list of steps", _list, steps)
        ),
        "finalize": finalize,
        "on_step_failure": on_step_failure,
    }
    fields.update((name, value) for name, value in optional.items() if value is not None)
    _options.check(fields)
    task: types.NewTask = fields  # type: ignore[assignment]
    return task


_ONLY_WHOLE = (
    *("idempotency_key", "unique", "unique_ms", "attributes", "traceparent"),
    *("retention_ms", "steps", "finalize", "on_step_failure"),
)


def new_step(
    name: str, task: types.NewTask, *, depends_on: Sequence[str] = ()
) -> types.NewStep:
    """Make a step of a task: a task with a name, which waits until those that it depends on
    are completed.

    Raises:
        ValueError: The task has an option that steps cannot have, such as a key; or a step's
            name is invalid.
    """
    for step_name in (name, *depends_on):
        if not _options.TYPE.holds(step_name):
            raise ValueError(f"step {step_name!r:.100}: its name must be {_options.TYPE.text}")
    fields: dict[str, Any] = dict(task)
    for only in _ONLY_WHOLE:
        if only in fields:
            raise ValueError(f"step {name}: a step has no {only}")
    fields["step"] = name
    if depends_on:
        fields["depends_on"] = list(depends_on)
    step: types.NewStep = fields  # type: ignore[assignment]
    return step
