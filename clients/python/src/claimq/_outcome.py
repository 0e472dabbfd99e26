"""How an attempt ended, from what its handler returned or raised."""

from __future__ import annotations

import asyncio
import base64
import traceback
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Union

from . import types
from ._app import Task
from ._context import Cancelled, Context, Permanent, RetryAfter, Snooze, _current
from ._task import seconds

Handler = Task[Any, Any]


@dataclass(frozen=True)
class Done:
    """The handler returned: the task is completed."""

    result: types.JSON = None
    """What it returned."""
    follow_ups: tuple[types.NewTask, ...] = ()
    """What current().then() was given."""
    steps: tuple[types.NewStep, ...] = ()
    """What current().add_steps() was given."""


@dataclass(frozen=True)
class Failed:
    """The handler raised: the attempt has failed."""

    error: str
    """What is kept with the task: the exception in one line, then its traceback."""
    exception: BaseException
    """What it raised."""
    permanent: bool = False
    """No other attempt follows."""
    retry_in: float | None = None
    """Seconds until the next attempt; None: the backoff says."""


@dataclass(frozen=True)
class Snoozed:
    """The handler gave the task back."""

    seconds: float
    """For so long."""


Outcome = Union[Done, Failed, Snoozed]


def perform(task: Handler, context: Context, params: object) -> Outcome:
    """Run a handler that is no async def."""
    token = _current.set(context)
    try:
        result = task.function(**task.arguments(params))
        return _done(result, context)
    except BaseException as e:
        return outcome_of(e, context)
    finally:
        _current.reset(token)


def _done(result: Any, context: Context) -> Done:
    return Done(result, tuple(context.follow_ups), tuple(context.added_steps))


async def perform_async(task: Handler, context: Context, params: object) -> Outcome:
    """Run a handler that is an async def. Cancel the task that this runs in to stop it."""
    _current.set(context)
    try:
        result = await task.function(**task.arguments(params))
        return _done(result, context)
    except BaseException as e:
        return outcome_of(e, context)


def result(of: Mapping[str, Any]) -> Any:
    """Return the result in an object of the API: any JSON, bytes, or None."""
    if "result_payload" in of:
        return base64.b64decode(of["result_payload"])
    return of.get("result")


def outcome_of(error: BaseException, context: Context) -> Outcome:
    """Return what an exception of a handler means."""
    if isinstance(error, Snooze):
        return Snoozed(max(seconds(error.after), 0.0))
    if isinstance(error, Permanent):
        return Failed(_told(error), error, permanent=True)
    if isinstance(error, RetryAfter):
        return Failed(_told(error), error, retry_in=max(seconds(error.after), 0.0))
    if isinstance(error, (Cancelled, asyncio.CancelledError)) and context.reason is not None:
        return Failed(f"told to stop: {context.reason}", error)
    if isinstance(error, (KeyboardInterrupt, SystemExit)):  # fails the attempt, not the process
        error = RuntimeError(f"the handler raised {error!r}").with_traceback(error.__traceback__)
    return Failed(_told(error, error), error)


def _told(error: BaseException, traced: BaseException | None = None) -> str:
    """Return an exception as text: first what it says, by which failures are grouped, then
    the traceback, of what the handler raised on purpose that of its cause."""
    traced = traced or error.__cause__
    if traced is error:
        head = "".join(traceback.format_exception_only(type(error), error)).strip()
    else:
        head = str(error) or type(error).__name__
    if traced is None:
        return head
    frames = traced.__traceback__
    if traced is error and frames is not None and frames.tb_next is not None:
        frames = frames.tb_next  # the first frame is claimq's
    lines = traceback.format_exception(type(traced), traced, frames)
    return head + "\n\n" + "".join(lines).rstrip()
