"""Makes the tasks that are submitted."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Literal, Union

from . import types

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
    """At most so long; None: one day, or initial if that is more."""
    factor: float = 2.0
    """1 to 1,000."""
    jitter: float = 0.2
    """Up to this share of the wait, 0 to 1, is taken off by chance, to keep tasks apart."""

    def to_api(self) -> types.Backoff:
        """Return it as the API takes it."""
        backoff: types.Backoff = {
            "initial_ms": milliseconds(self.initial),
            "factor": self.factor,
            "jitter": self.jitter,
        }
        if self.max is not None:
            backoff["max_ms"] = milliseconds(self.max)
        return backoff


def seconds(length: Seconds) -> float:
    """Return a length of time as seconds."""
    return length.total_seconds() if isinstance(length, timedelta) else float(length)


def milliseconds(length: Seconds) -> int:
    """Return a length of time as the API takes it; a part of a millisecond counts as one."""
    return -int(-seconds(length) * 1000 // 1)


def timestamp(time: datetime) -> str:
    """Return a time as the API takes it.

    Raises ValueError for a time without a time zone: it could be any.
    """
    if time.tzinfo is None:
        raise ValueError(f"{time!r} has no time zone: use datetime.now(timezone.utc), say")
    return time.isoformat()


def new_task(
    task_type: str,
    params: types.JSON = None,
    *,
    payload: bytes | None = None,
    key: str | None = None,
    unique: Literal["exists", "active"] | None = None,
    delay: Seconds | None = None,
    run_at: datetime | None = None,
    expires_at: datetime | None = None,
    priority: int | None = None,
    max_attempts: int | None = None,
    lease: Seconds | None = None,
    backoff: Backoff | None = None,
    retention: Seconds | None = None,
    labels: Mapping[str, str] | None = None,
    group: str | None = None,
    traceparent: str | None = None,
    steps: Sequence[types.NewStep] | None = None,
    finalize: Literal["auto", "claim"] | None = None,
    on_step_failure: Literal["fail", "continue"] | None = None,
) -> types.NewTask:
    """Make a task for Client.submit_many, a batch, or the follow-ups of a handler.

    What is None is the default of the task's type, else that of the server.

    Args:
        task_type: What workers claim by.
        params: What the handler gets: any JSON, up to 1 MiB. None: an object without fields.
        payload: Bytes in place of params.
        key: The idempotency key: a submit with a key that is taken makes no task, but finds
            the one that has it. Make it of what the work is about, as order-17-invoice.
        unique: "exists": the key is taken while the task exists, and 10 minutes more;
            "active": only until the task ends.
        delay: How long the task cannot be claimed, in seconds.
        run_at: The time before which it cannot be claimed.
        expires_at: If it is not claimed by then, it fails.
        priority: Higher is claimed first; 0 if it is not given.
        max_attempts: After so many claims that failed the task fails; 0: no limit.
        lease: How long a worker that died keeps the task from others, in seconds.
        backoff: How long it waits after an attempt that failed.
        retention: How long it is kept after its end, in seconds; 0: not at all; a negative
            one: until it is deleted.
        labels: Up to 16, to find it by.
        group: Of one type and group one task is claimed at a time, in order of submission.
        traceparent: The W3C trace context that its worker gets.
        steps: Tasks of which this one consists; see new_step.
        finalize: Who ends a task with steps: "auto", or "claim": a processor.
        on_step_failure: What a step that failed means for the others.

    Raises:
        ValueError: A time has no time zone, or params and payload are both given.
    """
    if params is not None and payload is not None:
        raise ValueError("params and payload are both given: give one of them")
    fields: dict[str, Any] = {"task_type": task_type}
    if payload is not None:
        fields["payload"] = base64.b64encode(payload).decode("ascii")
    elif params is not None or not steps:
        fields["params"] = {} if params is None else params
    optional = {
        "idempotency_key": key,
        "unique": unique,
        "delay_ms": None if delay is None else milliseconds(delay),
        "run_at": None if run_at is None else timestamp(run_at),
        "expires_at": None if expires_at is None else timestamp(expires_at),
        "priority": priority,
        "max_attempts": max_attempts,
        "lease_ms": None if lease is None else milliseconds(lease),
        "backoff": None if backoff is None else backoff.to_api(),
        "retention_ms": None if retention is None else max(milliseconds(retention), -1),
        "labels": None if labels is None else dict(labels),
        "group": group,
        "traceparent": traceparent,
        "steps": None if steps is None else list(steps),
        "finalize": finalize,
        "on_step_failure": on_step_failure,
    }
    fields.update((name, value) for name, value in optional.items() if value is not None)
    task: types.NewTask = fields  # type: ignore[assignment]
    return task


def new_step(
    name: str, task: types.NewTask, *, depends_on: Sequence[str] = ()
) -> types.NewStep:
    """Make a step of a task: a task with a name, which waits until those that it depends on
    are completed.

    Raises:
        ValueError: The task has what only a whole task can have, as a key.
    """
    fields: dict[str, Any] = dict(task)
    for only in ("idempotency_key", "unique", "traceparent", "retention_ms", "steps"):
        if only in fields:
            raise ValueError(f"step {name}: a step has no {only}")
    fields["step"] = name
    if depends_on:
        fields["depends_on"] = list(depends_on)
    step: types.NewStep = fields  # type: ignore[assignment]
    return step
