"""The context of a handler: its task, progress and follow-ups."""

from __future__ import annotations

import contextvars
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, cast

from . import types
from ._options import TIME_MAX
from ._task import Seconds, seconds

Reason = Literal["cancel_requested", "lease_lost", "timeout", "shutdown"]
"""Why a handler is told to stop: docs/protocol.md has what each means."""

SUBMIT_MAX = 1_000
"""Bounds the follow-ups of a task."""

STEPS_MAX = 1_000
"""Bounds the steps of a task."""


class Permanent(Exception):
    """Raised by a handler: the task fails for good, even if attempts are left."""


class RetryAfter(Exception):
    """Raised by a handler: the attempt fails, and the next follows after this time instead of
    the backoff."""

    def __init__(self, after: Seconds, message: str = "") -> None:
        """Take seconds, or a timedelta, and why. Raises ValueError for more than a year."""
        super().__init__(message or f"to be tried again in {after}")
        self.after = _checked(after)


class Snooze(Exception):
    """Raised by a handler: the task is given back, and can be claimed again after this time.
    The attempt is not counted."""

    def __init__(self, after: Seconds = 0) -> None:
        """Take seconds, or a timedelta; 0: at once. Raises ValueError for more than a year."""
        super().__init__(f"snoozed for {after}")
        self.after = _checked(after)


def _checked(after: Seconds) -> Seconds:
    if not seconds(after) <= TIME_MAX:  # NaN is not
        raise ValueError(f"after is {after}: it must be at most a year, {TIME_MAX} s")
    return after


class Cancelled(Exception):
    """Raised by raise_if_cancelled: the handler was told to stop. Let it pass."""

    reason: Reason

    def __init__(self, reason: Reason) -> None:
        """Take why."""
        super().__init__(f"told to stop: {reason}")
        self.reason = reason


@dataclass
class Context:
    """The attempt that a handler works on; current() returns it."""

    id: int
    """The task's id."""
    token: int
    """The claim token. Hand it to what the handler writes to, and let that refuse older ones:
    then a worker that was cut off can do no harm."""
    type: str
    """The task's type."""
    attempt: int
    """The number of the attempt, from 1."""
    labels: Mapping[str, str] = field(default_factory=dict[str, str])
    """The task's labels."""
    attributes: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """What the submitter said of params or payload."""
    signal: Any = None
    """The signal that the task was handed, if it waited for one."""
    payload: bytes | None = None
    """The task's payload, if it has one in place of params."""
    traceparent: str | None = None
    """The W3C trace context of the submit."""
    parent_id: int | None = None
    """Of a step: the task that it belongs to."""
    step: str | None = None
    """Of a step: its name."""
    dependencies: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Of a step: the results of the steps that it depends on, by name; None of one without.
    A result that is no JSON is bytes."""
    dependencies_left_out: bool = False
    """The results are too many: read them by Client.tasks(parent_id=..., include=["result"])."""
    deadline: float | None = None
    """When the handler is told to stop, by time.monotonic(); None: there is no limit."""
    reason: Reason | None = None
    """Why it is to stop; None: it is not."""
    follow_ups: list[types.NewTask] = field(default_factory=list[types.NewTask])
    added_steps: list[types.NewStep] = field(default_factory=list[types.NewStep])
    """The follow-ups passed to then()."""
    _report: Callable[[Any], None] = field(default=lambda value: None, repr=False)

    @property
    def cancelled(self) -> threading.Event:
        """Set when the handler is to stop. A thread can wait for it."""
        # Made when it is first asked for: few handlers do, and it costs more than the rest.
        made = self.__dict__.get("_cancelled")
        if made is None:  # two threads get the same one
            made = self.__dict__.setdefault("_cancelled", threading.Event())
        return cast(threading.Event, made)

    def _stop(self, reason: Reason) -> None:
        """Tell the handler to stop."""
        self.reason = reason
        self.cancelled.set()

    def progress(self, value: types.JSON) -> None:
        """Keep how far the work is with the task: any JSON but None, up to 4 KiB. Of what
        comes faster than it can be sent the last is. Raises ValueError for what is no JSON,
        or too much."""
        self._report(value)

    def raise_if_cancelled(self) -> None:
        """Raise Cancelled if the handler is to stop."""
        if self.reason is not None:
            raise Cancelled(self.reason)

    def left(self) -> float | None:
        """Return the seconds left until the deadline; None without a deadline."""
        return None if self.deadline is None else max(self.deadline - time.monotonic(), 0.0)

    def then(self, *tasks: types.NewTask) -> None:
        """Have tasks submitted in the same step in which this one is completed: all of it is
        done, or nothing. Task.new and new_task make them. If the handler raises, they are
        not submitted.

        Raises:
            ValueError: They are more than 1,000.
        """
        if len(self.follow_ups) + len(tasks) > SUBMIT_MAX:
            raise ValueError(f"a task has at most {SUBMIT_MAX} follow-ups")
        self.follow_ups.extend(tasks)

    def add_steps(self, *steps: types.NewStep) -> None:
        """Have steps added to the task that this step belongs to, right before this step is
        completed; new_step makes them. They may depend on each other and on steps that the task
        has. One that the task has under its name is not added again, so another attempt may add
        the same. If the handler raises, they are not added.

        Raises:
            ValueError: They are more than 1,000, or this task is no step.
        """
        if self.step is None:
            raise ValueError(f"task {self.id} is no step: it has no task to add steps to")
        if len(self.added_steps) + len(steps) > STEPS_MAX:
            raise ValueError(f"a task has at most {STEPS_MAX} steps")
        self.added_steps.extend(steps)


_current: contextvars.ContextVar[Context] = contextvars.ContextVar("claimq_current")


def current() -> Context:
    """Return the attempt that the caller works on: within a handler, also in what it awaits.

    Raises:
        RuntimeError: It is called outside of a handler; in a unit test use
            claimq.testing.run.
    """
    context = _current.get(None)
    if context is None:
        raise RuntimeError("current() is called outside of a handler")
    return context
