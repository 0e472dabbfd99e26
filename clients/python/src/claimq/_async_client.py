"""The client of a program with asyncio."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import datetime
from types import TracebackType
from typing import Any, Literal, TypeVar, cast

from . import types as api
from ._aio import Lines, Transport
from ._calls import Calls, Signalled, Submitted, is_end, shares_path
from ._config import configure
from ._core import Open, ReadLine, Sleep, Steps, StreamOutcome
from ._task import Backoff, Seconds, new_task
from .errors import Closed

T = TypeVar("T")


class AsyncClient:
    """Submits tasks, and looks at them. Tasks of one event loop may share one.

    A call goes to the node that leads, or to another that passes it on. It is repeated over
    lost connections and changes of leader, where that can do no harm, until its time is
    over; what it then raises says whether it may have been done. Every call raises the
    errors of claimq.errors, and takes `timeout`, the seconds that it may take in all.

        async with AsyncClient() as client:
            done = await client.submit("mail", {"to": "ada@example.org"}, key="welcome-ada")
    """

    def __init__(
        self,
        endpoints: str | Sequence[str] | None = None,
        *,
        api_key: str | None = None,
        api_key_file: str | None = None,
        ca_file: str | None = None,
        cert_file: str | None = None,
        key_file: str | None = None,
        ssl_context: ssl.SSLContext | None = None,
        timeout: float = 30.0,
    ) -> None:
        """Check the settings. Nothing is connected before the first call.

        Args:
            endpoints: Base URLs of nodes, as a list or separated by commas. None:
                CLAIMQ_ENDPOINTS, else http://127.0.0.1:7400. They are connected to
                themselves: HTTP_PROXY is not read.
            api_key: Sent with every request. None: CLAIMQ_API_KEY, else api_key_file.
            api_key_file: A file with the key, read again when it changes. None:
                CLAIMQ_API_KEY_FILE.
            ca_file: PEM of the authorities of https endpoints, read again when it changes.
                None: CLAIMQ_CA_FILE, else those of the system.
            cert_file: PEM of this client's certificate. None: CLAIMQ_CERT_FILE.
            key_file: PEM of its private key. None: CLAIMQ_KEY_FILE.
            ssl_context: In place of the three files.
            timeout: Seconds that a call may take with its repeats.

        Raises:
            ValueError: A setting is malformed.
            OSError: A file cannot be read.
        """
        core, tls = configure(
            endpoints, api_key, api_key_file, ca_file, cert_file, key_file, ssl_context, timeout
        )
        self._calls = Calls(core)
        self._transport = Transport(tls)
        self._closed = False

    async def close(self) -> None:
        """Close the connections. Later calls raise Closed."""
        self._closed = True
        self._transport.close()

    async def __aenter__(self) -> AsyncClient:
        """Return the client."""
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Close the connections."""
        await self.close()

    async def _run(self, steps: Steps[T]) -> T:
        """Do what the steps of a call ask for."""
        if self._closed:
            raise Closed("the client was closed")
        try:
            command = next(steps)
            while True:
                if isinstance(command, Sleep):
                    await asyncio.sleep(command.seconds)
                    command = steps.send(None)
                else:
                    command = steps.send(await self._transport.send(command))
        except StopIteration as e:
            return cast(T, e.value)

    async def submit(
        self,
        task_type: str,
        params: api.JSON = None,
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
        attributes: Mapping[str, api.JSON] | None = None,
        group: str | None = None,
        share_key: str | None = None,
        wait_for_signal: Seconds | None = None,
        traceparent: str | None = None,
        steps: Sequence[api.NewStep] | None = None,
        finalize: Literal["auto", "claim"] | None = None,
        on_step_failure: Literal["fail", "continue"] | None = None,
        timeout: float | None = None,
    ) -> Submitted:
        """Submit a task; it takes the arguments of new_task.

        It is on the disks of most nodes once this returns. Without a key it gets a random
        one, so that this call can be repeated; a second call makes a second task.

        Raises:
            Invalid: The task is malformed: `field` says where. Correct it.
            OutcomeUnknown: It may have been submitted, or may still be: submit it again with
                the same key.
            NotAvailable: It was not submitted. Try again later.
        """
        task = new_task(
            task_type,
            params,
            payload=payload,
            key=key,
            unique=unique,
            unique_for=unique_for,
            delay=delay,
            run_at=run_at,
            expires_at=expires_at,
            expires_again=expires_again,
            priority=priority,
            max_attempts=max_attempts,
            lease=lease,
            backoff=backoff,
            retention=retention,
            labels=labels,
            attributes=attributes,
            group=group,
            share_key=share_key,
            wait_for_signal=wait_for_signal,
            traceparent=traceparent,
            steps=steps,
            finalize=finalize,
            on_step_failure=on_step_failure,
        )
        return await self.submit_task(task, timeout=timeout)

    async def submit_task(self, task: api.NewTask, *, timeout: float | None = None) -> Submitted:
        """Submit a task that new_task made. Raises what submit raises."""
        return await self._run(self._calls.submit(task, timeout))

    async def submit_many(
        self, tasks: Sequence[api.NewTask], *, timeout: float | None = None
    ) -> list[Submitted]:
        """Submit many tasks, and return the outcome of each, in order.

        A request has up to 1,000 tasks or 7 MiB: either all its valid tasks are submitted, or
        none; a malformed one is refused by itself. timeout applies to each request.

        Raises:
            SubmitManyError: Some were not submitted: `results` has the outcome of each.
        """
        return await self._run(self._calls.submit_many(tasks, timeout))

    async def get(self, id: int, *, timeout: float | None = None) -> api.Task:
        """Return a task with its params, result and last attempts.

        Raises:
            NotFound: There is no such task, or it was removed.
        """
        return await self._run(self._calls.get(id, timeout))

    async def get_by_key(
        self, key: str, *, task_type: str | None = None, timeout: float | None = None
    ) -> api.Task:
        """Return the task that has an idempotency key.

        Raises:
            NotFound: No task has it.
        """
        return await self._run(self._calls.get_by_key(key, task_type, timeout))

    async def wait(self, id: int, *, timeout: float | None = None) -> api.Task:
        """Wait until a task is completed, failed or cancelled, and return it.

        timeout is in seconds; None: no limit.

        Raises:
            TimeoutError: It has not ended within timeout.
            NotFound: There is no such task, or it was removed meanwhile.
        """
        return await self._run(self._calls.wait(id, timeout))

    async def cancel(self, id: int, *, timeout: float | None = None) -> api.KnownTask:
        """Cancel a task. The worker of one that is claimed is asked to stop; it may complete
        it all the same.

        Raises:
            NotFound: There is no such task.
            Conflict: It is completed or has failed.
        """
        return await self._run(self._calls.cancel(id, timeout))

    async def signal(
        self, id: int, signal: api.JSON = None, *, timeout: float | None = None
    ) -> Signalled:
        """Hand a task the signal that it waits for: any JSON up to 64 KiB. The first one counts.

        Raises:
            NotFound: There is no such task.
            Conflict: It has ended without its signal, or needs none.
        """
        return await self._run(self._calls.signal(id, signal, timeout))

    async def retry(
        self,
        id: int,
        *,
        add_attempts: int | None = None,
        claim_token: int | None = None,
        timeout: float | None = None,
    ) -> api.KnownTask:
        """Make a task pending that has failed, was cancelled, or is claimed.

        add_attempts is added to its limit of attempts. With claim_token it is done only if
        that is the task's last claim. A retry whose answer is lost is not repeated: the task
        may have been claimed in between, and the repeat would take it from that worker.

        Raises:
            OutcomeUnknown: The answer was lost: look at the task.
            Conflict: It is completed, or has no attempts left.
        """
        return await self._run(self._calls.retry(id, add_attempts, claim_token, timeout))

    async def delete(self, id: int, *, timeout: float | None = None) -> None:
        """Delete a task that has ended; its key is free at once.

        Raises:
            NotFound: There is no such task.
            Conflict: It has not ended, or is a step.
        """
        await self._run(self._calls.delete(id, timeout))

    async def patch(
        self, id: int, changes: api.ChangeTaskBody, *, timeout: float | None = None
    ) -> api.KnownTask:
        """Change a task that is neither claimed nor ended: priority, run_at, labels,
        share_key; None clears.

        Raises:
            Conflict: It is claimed or has ended.
        """
        return await self._run(self._calls.patch(id, changes, timeout))

    async def tasks(
        self,
        *,
        status: api.Status | None = None,
        task_type: str | None = None,
        worker_id: str | None = None,
        labels: Mapping[str, str] | None = None,
        share_key: str | None = None,
        parent_id: int | None = None,
        created_after: datetime | None = None,
        created_before: datetime | None = None,
        contains: str | None = None,
        params: Mapping[str, str] | None = None,
        error_group: str | None = None,
        order: Literal["asc", "desc", "ended"] | None = None,
        include: Sequence[Literal["params", "result"]] = (),
    ) -> AsyncIterator[api.Task]:
        """List tasks that match, page by page as one iterates, with what include names.

        contains is a text in the submitted params; params are values in them by
        JSON pointer, as {"/to": "ada@example.org"}.
        """
        fields: dict[str, Any] = {
            "status": status,
            "task_type": task_type,
            "worker_id": worker_id,
            "label": labels,
            "share_key": share_key,
            "parent_id": parent_id,
            "created_after": created_after,
            "created_before": created_before,
            "contains": contains,
            "param": params,
            "error_group": error_group,
            "order": order,
            "include": ",".join(include) or None,
        }
        while True:
            page = await self._run(self._calls.tasks_page(fields))
            for item in page["tasks"]:
                yield item
            if page["next_cursor"] is None:
                return
            fields["cursor"] = page["next_cursor"]

    async def act(
        self,
        action: Literal["retry", "cancel", "delete"],
        filter: api.Filter | None = None,
        *,
        all: bool | None = None,
        add_attempts: int | None = None,
        dry_run: bool | None = None,
        expect: int | None = None,
        timeout: float | None = None,
    ) -> api.ActOnTasksAnswer:
        """Retry, cancel or delete all tasks that match; it is not atomic.

        If the answer has `more`, it ran out of time, and the same call continues. A filter that
        selects nothing needs all=True. With dry_run nothing is changed; with expect nothing is
        changed unless exactly that many match.

        Raises:
            Conflict: Another number matches than was expected.
        """
        fields = {
            "all": all,
            "add_attempts": add_attempts,
            "dry_run": dry_run,
            "expect": expect,
        }
        return await self._run(self._calls.act(action, filter, fields, timeout))

    async def batch(
        self, ops: Sequence[api.Op], *, atomic: bool = False, timeout: float | None = None
    ) -> api.RunBatchAnswer:
        """Run up to 1,000 ops in one entry of the log, in order; atomic: all or none.

        A submit without a key gets a random one, and claims without a `claim_request_id` share
        one. Without atomic, `results` has the outcome of each op, a refusal too.

        Raises:
            ClaimqError: Of an atomic batch, what the first op that was refused would raise;
                `details["failed_op"]` says which.
        """
        return await self._run(self._calls.batch(ops, atomic, timeout))

    async def why(self, id: int, *, timeout: float | None = None) -> api.ExplainTaskAnswer:
        """Return why a task is not running.

        Raises:
            NotFound: There is no such task.
        """
        path = f"/api/tasks/{id}/why"
        return cast(api.ExplainTaskAnswer, await self._run(self._calls.look(path, timeout)))

    async def types(self, *, timeout: float | None = None) -> api.ListTypesAnswer:
        """Return the types that have tasks or settings, with their counts."""
        return cast(api.ListTypesAnswer, await self._run(self._calls.look("/api/types", timeout)))

    async def set_type(
        self, name: str, settings: api.ChangeTypeBody, *, timeout: float | None = None
    ) -> api.Type:
        """Change settings of a type, as {"paused": True}; None clears one."""
        return await self._run(self._calls.set_type(name, settings, timeout))

    async def shares(self, name: str, *, timeout: float | None = None) -> list[api.Share]:
        """Return the shares of a type that have pending or claimed tasks, or settings.

        It asks for page after page, of 1,000 at most; timeout is of each.
        """
        shares: list[api.Share] = []
        after: str | None = None
        while True:
            path = shares_path(name)
            page = await self._run(self._calls.look(path, timeout, after=after))
            shares += cast("list[api.Share]", page["shares"])
            after = page.get("next")
            if after is None:
                return shares

    async def set_share(
        self, name: str, key: str, settings: api.SetShareBody, *, timeout: float | None = None
    ) -> api.Share:
        """Replace the settings of a share, as {"paused": True}; those left out are its type's."""
        return await self._run(self._calls.set_share(name, key, settings, timeout))

    async def delete_share(self, name: str, key: str, *, timeout: float | None = None) -> api.Share:
        """Remove the settings of a share, not its tasks."""
        return await self._run(self._calls.delete_share(name, key, timeout))

    async def schedules(self, *, timeout: float | None = None) -> list[api.Schedule]:
        """Return all schedules, by name.

        It asks for page after page, of 1,000 and about 8 MiB at most; timeout is of each.
        """
        schedules: list[api.Schedule] = []
        after: str | None = None
        while True:
            path = "/api/schedules"
            page = await self._run(self._calls.look(path, timeout, after=after))
            schedules += cast("list[api.Schedule]", page["schedules"])
            after = page.get("next")
            if after is None:
                return schedules

    async def set_schedule(
        self, name: str, schedule: api.NewSchedule, *, timeout: float | None = None
    ) -> api.Schedule:
        """Make a schedule, or replace it.

        Raises:
            Invalid: It is malformed: `field` says where.
        """
        return await self._run(self._calls.set_schedule(name, schedule, timeout))

    async def delete_schedule(self, name: str, *, timeout: float | None = None) -> None:
        """Delete a schedule; the tasks that it submitted stay.

        Raises:
            NotFound: There is no such schedule.
        """
        await self._run(self._calls.delete_schedule(name, timeout))

    async def failures(
        self, *, task_type: str | None = None, timeout: float | None = None
    ) -> api.ListFailuresAnswer:
        """Return failed tasks, grouped by their errors."""
        answer = await self._run(self._calls.look("/api/failures", timeout, task_type=task_type))
        return cast(api.ListFailuresAnswer, answer)

    async def workers(self, *, timeout: float | None = None) -> api.ListWorkersAnswer:
        """Return who holds what, and when each was last heard from."""
        answer = await self._run(self._calls.look("/api/workers", timeout))
        return cast(api.ListWorkersAnswer, answer)

    async def stats(self, *, timeout: float | None = None) -> api.GetStatsAnswer:
        """Return how many tasks there are, by status and type."""
        return cast(api.GetStatsAnswer, await self._run(self._calls.look("/api/stats", timeout)))

    async def events(
        self,
        *,
        after: str = "",
        task_type: str | None = None,
        worker_id: str | None = None,
        event: Sequence[api.EventName] = (),
    ) -> AsyncIterator[api.Event]:
        """Walk the trail of events, oldest first, up to where it is now.

        after is a place, "INDEX.SUB" of an event, behind which to begin.

        Raises:
            EventsGone: The events after that position are no longer kept.
        """
        filters = {"task_type": task_type, "worker_id": worker_id, "event": list(event)}
        end = ""
        while True:
            page = await self._run(self._calls.events_page(filters, after))
            end = end or page["place"]
            for item in page["events"]:
                yield item
            if is_end(page, after, end):
                return
            after = page["next"]

    async def follow(
        self,
        *,
        after: str = "",
        task_type: str | None = None,
        worker_id: str | None = None,
        event: Sequence[api.EventName] = (),
    ) -> AsyncIterator[api.Event]:
        """Walk the trail of events as it grows, without an end.

        Each event comes once and in order, over lost connections and changes of leader.
        after is a place, "INDEX.SUB" of an event, behind which to begin; "": from now on.
        It gives up only on a refusal that no other node would answer differently.

        Raises:
            EventsGone: It fell behind, and the next events are no longer kept.
        """
        filters = {"task_type": task_type, "worker_id": worker_id, "event": list(event)}
        steps = self._calls.follow(filters, after)
        lines: Lines | None = None
        outcome: StreamOutcome = None
        try:
            while not self._closed:
                command = steps.send(outcome)
                outcome = None
                if isinstance(command, Open):
                    if lines is not None:
                        lines.close()
                    outcome, lines = await self._transport.open(command)
                elif isinstance(command, ReadLine):
                    assert lines is not None
                    outcome = await lines.read(command.timeout)
                elif isinstance(command, Sleep):
                    await asyncio.sleep(command.seconds)
                else:
                    yield cast(api.Event, command.event)
            raise Closed("the client was closed")
        finally:
            if lines is not None:
                lines.close()

    async def request(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        repeatable: bool = False,
        timeout: float | None = None,
    ) -> dict[str, Any]:
        """Make a call of docs/api.md that has no method here, and return what is answered.

        path is percent-encoded, with the query. repeatable says that the call may be made
        again when its answer was lost; a GET always may.
        """
        return await self._run(self._calls.request(method, path, body, repeatable, timeout))
