"""Helpers for tests of handlers and of what submits tasks, without a server.

The pytest plugin (claimq.pytest_plugin) has fixtures with one.
"""

from __future__ import annotations

import asyncio
import base64
import contextvars
import json
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from typing import Any, ParamSpec, TypeVar

from . import types
from ._app import App, Task
from ._calls import Submitted
from ._client import Client
from ._context import Context
from ._json import encode
from ._outcome import Done, Failed, Outcome, Snoozed, perform, perform_async, result
from ._task import milliseconds

__all__ = [
    "Done",
    "Failed",
    "Outcome",
    "Recorder",
    "Snoozed",
    "recorder",
    "run",
    "run_async",
    "run_task",
    "work_off",
]

P = ParamSpec("P")
R = TypeVar("R")


def run(task: Task[P, R], *args: P.args, **kwargs: P.kwargs) -> Outcome:
    """Run a handler as a worker does, and return how the attempt ended.

    The arguments go through JSON, as with a submit. Use run_async within an event loop.

    Returns:
        Done with its result and follow-ups, Failed, or Snoozed.
    """
    return run_task(task, _context(task), _params(task.new(*args, **kwargs)))


async def run_async(task: Task[P, R], *args: P.args, **kwargs: P.kwargs) -> Outcome:
    """Run a handler that is an async def, as run does, within an event loop."""
    params = _params(task.new(*args, **kwargs))
    return await asyncio.create_task(perform_async(task, _context(task), params))


def run_task(task: Task[Any, Any], context: Context, params: object) -> Outcome:
    """Run a handler on submitted params, with the caller's context."""
    if task.is_async:
        return asyncio.run(perform_async(task, context, params))
    return contextvars.copy_context().run(perform, task, context, params)


SNOOZES_MAX = 100
"""How often work_off lets a task be snoozed for no time."""


def work_off(app: App, client: Client) -> list[Outcome]:
    """Run the handlers of an app until nothing is left that can be claimed now, one task at a
    time in this process, and return how each attempt ended.

    It is for tests: leases are not extended. Tasks that handlers submit go to client.

    Raises:
        RuntimeError: A task was snoozed for 0 s 100 times: it can always be claimed.
    """
    before = app._client
    app.client = client
    outcomes: list[Outcome] = []
    at_once: dict[int, int] = {}  # how often each task was snoozed for no time
    try:
        while app.tasks:
            body = {"worker_id": "test", "task_types": list(app.tasks), "limit": 1}
            answer = client.request("POST", "/api/tasks/claim", body)
            if not answer["tasks"]:
                return outcomes
            claimed = answer["tasks"][0]
            outcome = _work(app, client, claimed)
            outcomes.append(outcome)
            if not isinstance(outcome, Snoozed) or milliseconds(outcome.seconds) > 0:
                continue
            times = at_once.get(claimed["id"], 0) + 1
            if times >= SNOOZES_MAX:
                raise RuntimeError(
                    f"task {claimed['id']} ({claimed['task_type']}) was snoozed for 0 s"
                    f" {times} times, and would be without end"
                )
            at_once[claimed["id"]] = times
        return outcomes
    finally:
        app._client = before


def _work(app: App, client: Client, claimed: Mapping[str, Any]) -> Outcome:
    """Run the handler of a task that was claimed, and settle it."""
    path = f"/api/tasks/{claimed['id']}/"
    claim = {"worker_id": "test", "claim_token": claimed["claim_token"]}
    context = Context(
        id=claimed["id"],
        token=claimed["claim_token"],
        type=claimed["task_type"],
        attempt=claimed["attempts"],
        labels=claimed.get("labels", {}),
        attributes=claimed.get("attributes", {}),
        signal=claimed.get("signal"),
        payload=base64.b64decode(claimed["payload"]) if "payload" in claimed else None,
        traceparent=claimed.get("traceparent"),
        parent_id=claimed.get("parent_id"),
        step=claimed.get("step"),
    )
    if claimed.get("depends_on"):
        steps = client.tasks(parent_id=claimed["parent_id"], include=["result"])
        names = claimed["depends_on"]
        results = {s.get("step", ""): result(s) for s in steps}
        context.dependencies = {name: results[name] for name in names}

    def report(value: Any) -> None:
        client.request("POST", path + "extend", claim | {"progress": value})

    context._report = report
    outcome = run_task(app.tasks[context.type], context, claimed.get("params", {}))
    if isinstance(outcome, Snoozed):
        delay = {"delay_ms": milliseconds(outcome.seconds)} if outcome.seconds else {}
        client.request("POST", path + "release", claim | delay)
    elif isinstance(outcome, Failed):
        body: dict[str, Any] = claim | {"error": outcome.error}
        if outcome.permanent:
            body["permanent"] = True
        if outcome.retry_in is not None:
            body["retry_in_ms"] = milliseconds(outcome.retry_in)
        client.request("POST", path + "fail", body)
    else:
        body = dict(claim)
        if isinstance(outcome.result, (bytes, bytearray)):
            body["result_payload"] = base64.b64encode(outcome.result).decode("ascii")
        elif outcome.result is not None:
            body["result"] = outcome.result
        if outcome.follow_ups:
            body["submit"] = list(outcome.follow_ups)
        if outcome.steps:
            client.request("POST", path + "steps", claim | {"steps": list(outcome.steps)})
        client.request("POST", path + "complete", body)
    return outcome


def _params(task: types.NewTask) -> Any:
    return json.loads(encode(task.get("params", {})))


def _context(task: Task[Any, Any]) -> Context:
    return Context(id=1, token=1, type=task.type, attempt=1)


class Recorder:
    """Keeps what an app submits, in place of sending it."""

    def __init__(self) -> None:
        """Begin with nothing."""
        self.submitted: list[types.NewTask] = []
        """The tasks, in the order of their submits."""

    def submit_task(self, task: types.NewTask, *, timeout: float | None = None) -> Submitted:
        """Keep a task, in place of Client.submit_task."""
        encode(task)  # as a submit would refuse what is no JSON
        self.submitted.append(task)
        return Submitted(len(self.submitted), created=True)

    def of(self, task: Task[Any, Any]) -> list[Mapping[str, Any]]:
        """Return the params of the tasks that were submitted of a type."""
        return [t.get("params", {}) for t in self.submitted if t.get("task_type") == task.type]

    def assert_submitted(self, task: Task[P, R], *args: P.args, **kwargs: P.kwargs) -> None:
        """Fail the test unless a task with these arguments was submitted, once.

        Options are compared, too, if the task has some: send.options(key="k") wants that key.
        """
        want = task.new(*args, **kwargs)
        found = [
            t for t in self.submitted if all(t.get(name) == value for name, value in want.items())
        ]
        have = self.of(task)
        assert len(found) == 1, (
            f"{task.type} with {want.get('params')} was submitted {len(found)} times, not once;"
            f" of the type there are {have}"
        )

    def assert_not_submitted(self, task: Task[Any, Any]) -> None:
        """Fail the test if a task of the type was submitted."""
        have = self.of(task)
        assert not have, f"{task.type} was submitted: {have}"


class _AsyncRecorder:
    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder

    async def submit_task(
        self, task: types.NewTask, *, timeout: float | None = None
    ) -> Submitted:
        return self._recorder.submit_task(task, timeout=timeout)


@contextmanager
def recorder(app: App) -> Generator[Recorder, None, None]:
    """Keep what the handlers of an app submit, while the context lasts.

    with recorder(app) as r:
        sign_up("ada@example.org")
    r.assert_submitted(send_mail, to="ada@example.org")
    """
    r = Recorder()
    before = app._client, app._async_client
    app._client = r  # type: ignore[assignment]
    app._async_client = _AsyncRecorder(r)  # type: ignore[assignment]
    try:
        yield r
    finally:
        app._client, app._async_client = before
