"""The calls of a client, as steps that Client and AsyncClient drive."""

from __future__ import annotations

import operator
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, Union, cast
from urllib.parse import quote, urlencode

from . import _repeat, types
from ._core import WAIT_GRACE, Answer, Core, Request, Sleep, Steps, Stream
from ._json import encode
from ._task import timestamp
from .errors import ClaimqError, Invalid, NotFound, SubmitManyError, TooLarge

SUBMIT_ITEMS_MAX = 1_000
SUBMIT_TASKS_MAX = 10_000
SUBMIT_BYTES_MAX = 7 << 20
"""Bounds of one request of submit_many: tasks, tasks with their steps, and bytes."""

WAIT_PAUSE = 0.05
"""Seconds between two requests of a wait, at least."""

@dataclass(frozen=True)
class Signalled:
    """The outcome of a signal."""

    task: types.Task
    """The task after the call, with the signal that counts."""
    differs: bool
    """The task had been handed another signal before, which counts."""


_Parameter = Union[str, int, datetime, list[str], None]

ENDED = ("completed", "failed", "cancelled")


@dataclass(frozen=True)
class Submitted:
    """The outcome of a submit."""

    id: int
    """The task's id."""
    created: bool
    """False: the key was taken, and `id` is the task that has it. A repeat after an answer
    that was lost may find the task that this very call made; then it is False, too."""
    differs: bool = False
    """The task that has the key has another type or other params than the one that was
    submitted: a mistake in how the keys are made."""
    replaced: bool = False
    """With unique="replace": the task waited with the key, and has these params now."""


def task_id(given: int) -> int:
    """Return the id. Raises TypeError or ValueError if it cannot be a task's id."""
    number = operator.index(given)
    if number < 1:
        raise ValueError(f"task id {number}: it must be 1 or more")
    return number


def _query(path: str, fields: Mapping[str, _Parameter]) -> str:
    """Add those of the fields to the path that are not None."""
    pairs: list[tuple[str, str]] = []
    for name, value in fields.items():
        if value is None:
            continue
        if isinstance(value, list):
            pairs += [(name, item) for item in value]
        else:
            text = timestamp(value) if isinstance(value, datetime) else str(value)
            pairs.append((name, text))
    return path + ("?" + urlencode(pairs) if pairs else "")


def _without_none(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}


class Calls:
    """Makes the calls of one client."""

    def __init__(self, core: Core) -> None:
        """Take what the calls share."""
        self.core = core

    def request(
        self,
        method: str,
        path: str,
        body: object,
        repeatable: bool,
        timeout: float | None,
        wait: float = 0.0,
    ) -> Steps[dict[str, Any]]:
        """Make any call, and return the object that was answered."""
        data = None if body is None else encode(body)
        answer = yield from self._call(method, path, data, repeatable, timeout, wait)
        return answer.data

    def _call(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        repeatable: bool = True,
        timeout: float | None = None,
        wait: float = 0.0,
    ) -> Steps[Answer]:
        return self.core.call(Request(method, path, body, repeatable, wait), timeout)

    def submit(self, task: types.NewTask, timeout: float | None) -> Steps[Submitted]:
        """Submit a task; without a key it gets a random one."""
        keyed, is_own = _keyed(task)
        answer = yield from self._call("POST", "/api/tasks", encode(keyed), timeout=timeout)
        return _outcome(answer.data["task"]["id"], answer.data, is_own)

    def submit_many(
        self, tasks: Sequence[types.NewTask], timeout: float | None
    ) -> Steps[list[Submitted]]:
        """Submit many tasks, in as few requests as their bounds allow."""
        results: list[Submitted | ClaimqError] = []
        failed: ClaimqError | None = None
        for part in _parts(tasks):
            if failed is None:
                body = b'{"tasks":[' + b",".join(item for item, _ in part) + b"]}"
                try:
                    answer = yield from self._call("POST", "/api/tasks", body, timeout=timeout)
                except ClaimqError as e:
                    failed = e
                else:
                    told = zip(answer.data["results"], part)
                    results += [_submitted(result, is_own) for result, (_, is_own) in told]
                    continue
                results += [failed] * len(part)
            else:
                results += [type(failed)(f"not sent: {failed.message}")] * len(part)
        if any(isinstance(r, ClaimqError) for r in results):
            raise SubmitManyError(results)
        return cast("list[Submitted]", results)

    def get(self, id: int, timeout: float | None) -> Steps[types.Task]:
        """Get a task."""
        answer = yield from self._call("GET", f"/api/tasks/{task_id(id)}", timeout=timeout)
        return cast(types.Task, answer.data["task"])

    def get_by_key(
        self, key: str, task_type: str | None, timeout: float | None
    ) -> Steps[types.Task]:
        """Get the task that has an idempotency key."""
        path = "/api/tasks/by-key/" + quote(key, safe="")
        answer = yield from self._call(
            "GET", _query(path, {"task_type": task_type}), timeout=timeout
        )
        return cast(types.Task, answer.data["task"])

    def wait(self, id: int, timeout: float | None) -> Steps[types.Task]:
        """Wait until a task has ended."""
        clock = self.core.clock
        until = None if timeout is None else clock() + timeout
        while True:
            began = clock()
            wait = _repeat.POLL_MAX if until is None else min(until - began, _repeat.POLL_MAX)
            path = f"/api/tasks/{task_id(id)}?wait_ms={max(int(wait * 1000), 0)}"
            wait = max(wait, 0.0)
            limit = None if until is None else wait + min(WAIT_GRACE, self.core.timeout)
            answer = yield from self._call("GET", path, timeout=limit, wait=wait)
            task = cast(types.Task, answer.data["task"])
            if task["status"] in ENDED:
                return task
            now = clock()
            if until is not None and now >= until:
                raise TimeoutError(f"task {id} has not ended yet: it is {task['status']}")
            if now - began < WAIT_PAUSE:
                yield Sleep(WAIT_PAUSE)

    def cancel(self, id: int, timeout: float | None) -> Steps[types.KnownTask]:
        """Cancel a task, or ask its worker to."""
        path = f"/api/tasks/{task_id(id)}/cancel"
        answer = yield from self._call("POST", path, b"{}", timeout=timeout)
        return cast(types.KnownTask, answer.data["task"])

    def signal(self, id: int, signal: types.JSON, timeout: float | None) -> Steps[Signalled]:
        """Hand a task its signal."""
        body = encode({} if signal is None else {"signal": signal})
        path = f"/api/tasks/{task_id(id)}/signal"
        answer = yield from self._call("POST", path, body, timeout=timeout)
        same = answer.data.get("same_signal", True)
        return Signalled(cast(types.Task, answer.data["task"]), differs=not same)

    def retry(
        self, id: int, add_attempts: int | None, claim_token: int | None, timeout: float | None
    ) -> Steps[types.KnownTask]:
        """Make a task pending again."""
        body = _without_none({"add_attempts": add_attempts, "claim_token": claim_token})
        repeatable = _repeat.safe("retry", claim_token is not None)
        answer = yield from self._call(
            "POST", f"/api/tasks/{task_id(id)}/retry", encode(body), repeatable, timeout
        )
        return cast(types.KnownTask, answer.data["task"])

    def delete(self, id: int, timeout: float | None) -> Steps[None]:
        """Delete a task; if a repeat finds none, an earlier try has deleted it."""
        yield from self._delete(f"/api/tasks/{task_id(id)}", timeout)

    def _delete(self, path: str, timeout: float | None) -> Steps[None]:
        try:
            yield from self._call("DELETE", path, timeout=timeout)
        except NotFound as e:
            if not e._doubted:
                raise

    def patch(
        self, id: int, changes: Mapping[str, Any], timeout: float | None
    ) -> Steps[types.KnownTask]:
        """Change a task."""
        body = encode(changes)
        answer = yield from self._call(
            "PATCH", f"/api/tasks/{task_id(id)}", body, timeout=timeout
        )
        return cast(types.KnownTask, answer.data["task"])

    def tasks_page(self, fields: Mapping[str, Any]) -> Steps[types.ListTasksAnswer]:
        """Get a page of a list of tasks."""
        labels = fields.get("label")
        query = dict(fields)
        if labels is not None:
            query["label"] = [f"{name}:{value}" for name, value in labels.items()]
        params = fields.get("param")
        if params is not None:
            query["param"] = [f"{at}:{value}" for at, value in params.items()]
        answer = yield from self._call("GET", _query("/api/tasks", query))
        return cast(types.ListTasksAnswer, answer.data)

    def act(
        self,
        action: Literal["retry", "cancel", "delete"],
        filter: types.Filter | None,
        fields: Mapping[str, Any],
        timeout: float | None,
    ) -> Steps[types.ActOnTasksAnswer]:
        """Act on all tasks that match."""
        body = {"action": action} | _without_none({"filter": filter, **fields})
        repeatable = action != "retry" and "expect" not in body
        answer = yield from self._call(
            "POST", "/api/tasks/actions", encode(body), repeatable, timeout
        )
        return cast(types.ActOnTasksAnswer, answer.data)

    def batch(
        self, ops: Sequence[types.Op], atomic: bool, timeout: float | None
    ) -> Steps[types.RunBatchAnswer]:
        """Run many ops in one entry of the log."""
        keyed = [_keyed(op)[0] if op["op"] == "submit" else op for op in ops]
        body: dict[str, Any] = {"ops": keyed, "atomic": atomic}
        if any(op["op"] == "claim" and not _marked(op) for op in keyed):
            body["claim_request_id"] = secrets.token_hex(16)  # for claims that have none
        repeatable = all(
            _repeat.batch_safe(op["op"], op["op"] == "claim" or _marked(op)) for op in keyed
        )
        answer = yield from self._call("POST", "/api/batch", encode(body), repeatable, timeout)
        return cast(types.RunBatchAnswer, answer.data)

    def look(self, path: str, timeout: float | None, **query: Any) -> Steps[dict[str, Any]]:
        """Read what a path has."""
        answer = yield from self._call("GET", _query(path, query), timeout=timeout)
        return answer.data

    def set_type(
        self, name: str, changes: Mapping[str, Any], timeout: float | None
    ) -> Steps[types.Type]:
        """Change settings of a type."""
        path = "/api/types/" + quote(name, safe="")
        answer = yield from self._call("PATCH", path, encode(changes), timeout=timeout)
        return cast(types.Type, answer.data["type"])

    def set_share(
        self, task_type: str, key: str, settings: Mapping[str, Any], timeout: float | None
    ) -> Steps[types.Share]:
        """Replace the settings of a share."""
        answer = yield from self._call(
            "PUT", _share_path(task_type, key), encode(settings), timeout=timeout
        )
        return cast(types.Share, answer.data["share"])

    def delete_share(self, task_type: str, key: str, timeout: float | None) -> Steps[types.Share]:
        """Remove the settings of a share."""
        answer = yield from self._call("DELETE", _share_path(task_type, key), timeout=timeout)
        return cast(types.Share, answer.data["share"])

    def set_schedule(
        self, name: str, schedule: types.NewSchedule, timeout: float | None
    ) -> Steps[types.Schedule]:
        """Make a schedule, or replace it."""
        path = "/api/schedules/" + quote(name, safe="")
        answer = yield from self._call("PUT", path, encode(schedule), timeout=timeout)
        return cast(types.Schedule, answer.data["schedule"])

    def delete_schedule(self, name: str, timeout: float | None) -> Steps[None]:
        """Delete a schedule."""
        yield from self._delete("/api/schedules/" + quote(name, safe=""), timeout)

    def events_page(self, filters: Mapping[str, Any], after: str) -> Steps[types.Events]:
        """Get a page of the trail."""
        query = {**filters, "after": after or None, "limit": 1000}
        answer = yield from self._call("GET", _query("/api/events", query))
        return cast(types.Events, answer.data)

    def follow(self, filters: Mapping[str, Any], after: str) -> Stream:
        """Walk the trail as it grows."""
        return self.core.follow(_query("/api/events", filters), after)


def is_end(page: types.Events, after: str, end: str) -> bool:
    """Report whether a page of the trail is the last one of a walk up to the place end."""
    return page["next"] == after or _place(page["next"]) >= _place(end)


def _place(text: str) -> tuple[int, int]:
    index, _, sub = text.partition(".")
    return int(index or 0), int(sub or 0)


def _keyed(task: Mapping[str, Any]) -> tuple[Mapping[str, Any], bool]:
    """Return the task with an idempotency key, and whether the key was generated."""
    if task.get("idempotency_key") is not None:
        return task, False
    return {**task, "idempotency_key": secrets.token_hex(16)}, True


def shares_path(task_type: str) -> str:
    """Return the path of the shares of a type."""
    return "/api/types/" + quote(task_type, safe="") + "/shares"


def _share_path(task_type: str, key: str) -> str:
    return shares_path(task_type) + "/" + quote(key, safe="")


def _marked(op: Mapping[str, Any]) -> bool:
    """Report whether an op carries what the server recognizes a repeat by."""
    names = {"submit": "idempotency_key", "claim": "claim_request_id"}
    return op.get(names.get(op["op"], "claim_token")) is not None


def _parts(tasks: Sequence[types.NewTask]) -> list[list[tuple[bytes, bool]]]:
    """Encode the tasks, and divide them into requests."""
    parts: list[list[tuple[bytes, bool]]] = []
    count = size = 0
    for task in tasks:
        keyed, is_own = _keyed(task)
        item = encode(keyed)
        steps = 1 + len(task.get("steps", ()))
        full = parts and (
            len(parts[-1]) == SUBMIT_ITEMS_MAX
            or count + steps > SUBMIT_TASKS_MAX
            or size + len(item) > SUBMIT_BYTES_MAX
        )
        if not parts or full:
            parts.append([])
            count = size = 0
        parts[-1].append((item, is_own))
        count += steps
        size += len(item) + 1
    return parts


def _outcome(task_id: int, result: Mapping[str, Any], is_own: bool) -> Submitted:
    return Submitted(
        task_id,
        bool(result["created"]) or is_own,
        differs=not result.get("same_request", True),
        replaced=result.get("replaced", False),
    )


def _submitted(result: Mapping[str, Any], is_own: bool) -> Submitted | ClaimqError:
    if "id" in result:
        return _outcome(result["id"], result, is_own)
    kind: type[ClaimqError] = TooLarge if result["code"] == "payload_too_large" else Invalid
    return kind(
        result["error"],
        code=result["code"],
        advice=result["message"],
        status=types.STATUS.get(result["code"], 0),
        field=result["field"],
        details=result,
    )
