"""The objects of the HTTP API, as they are sent and answered.

Made from api/openapi.yaml by `go test ./api -run Python_types -update`; do not edit.
Names that end in _ms are milliseconds, times are RFC 3339 in UTC. At run time each object is
a plain dict.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal, NotRequired, TypedDict, Union

JSON = Any
"""Any JSON value."""


class RefusalFilters(TypedDict):
    """Of no_pending_tasks: those that were sent, as sent"""

    task_types: NotRequired[list[str]]
    max_attempts_remaining: NotRequired[int]
    sort_by: NotRequired[Literal["priority", "created_at", "random"]]
    sort_order: NotRequired[str]


class Refusal(TypedDict):
    """The body of every failed call; what follows `request_id` depends on the code"""

    success: Literal[False]
    error: str
    """The error, for people"""
    code: Code
    """Stable identifier for programs"""
    message: str
    """What to do"""
    request_id: str
    """As in X-Request-ID"""
    field: NotRequired[str]
    """The field, header or parameter that is wrong: `priority`, `tasks[3].priority`,
    `task_types[1]`, `ops[3].id`"""
    task_id: NotRequired[int]
    """Of a 409 about tasks: the one that stood against the call"""
    status: NotRequired[Literal["pending", "scheduled", "blocked", "claimed", "running", "completed", "failed", "cancelled"]]
    """Of a 409 about tasks: what that task is"""
    worker_id: NotRequired[str | None]
    """Of a 409 about tasks: the worker or processor that holds or ended it; null: none"""
    reason: NotRequired[Literal["scheduled", "blocked", "running", "group_behind", "limit_reached", "rate_limited", "share_limit_reached", "share_rate_limited", "no_steps", "no_parent", "no_signal", "step", "parent_ended", "dependency_ended", "cancel_requested", "moved_on", "memory", "disk", "in_flight", "waiting_claims", "waiting_reads", "connections", "bodies", "answers", "reads", "key_connections", "key_waits", "key_streams", "issuer"]]
    """Why: of task_not_claimable, where `running` is a task with steps; `step` of
    task_not_terminal; `parent_ended`, `dependency_ended` and `cancel_requested` of a retry
    of steps; `moved_on` of a retry; of overloaded what is full, if it is one of the
    server's bounds, or that the `issuer` of tokens did not answer"""
    role: NotRequired[Literal["reader", "producer", "worker", "operator", "producer or worker"]]
    """Of forbidden: which role the call, or the op of a batch, needs"""
    attempts: NotRequired[int]
    """Of max_attempts_reached"""
    max_attempts: NotRequired[int]
    """Of max_attempts_reached"""
    filters: NotRequired[RefusalFilters]
    """Of no_pending_tasks: those that were sent, as sent"""
    failed_op: NotRequired[int]
    """Of an atomic batch that was refused: which op, from 0"""
    matched: NotRequired[int]
    """Of count_mismatch: how many tasks the filter matches"""
    expect: NotRequired[int]
    """Of count_mismatch: what was expected"""
    place: NotRequired[str]
    """Of place_ahead: where the trail is"""
    oldest: NotRequired[str]
    """Of events_gone: the place of the oldest event that is kept"""


class Backoff(TypedDict):
    """The wait after an attempt that failed or expired: min(max_ms, initial_ms *
    factor^(attempts-1)), less a share of up to jitter. Default of a task: its type's, else
    the server's, which in a new cluster is 1 s, doubled up to 1 h, with a jitter of 0.2.
    With an initial_ms of 0 there is no wait"""

    initial_ms: int
    """After the first attempt. 0: no wait, regardless of the type's and the server's
    backoff"""
    max_ms: NotRequired[int]
    """No longer than this, and not below initial_ms. Default: 3600000, or initial_ms if
    that is more"""
    factor: NotRequired[float]
    """The delay grows by this factor with each further attempt; six decimals"""
    jitter: NotRequired[float]
    """Up to this share is taken off, by a hash of task and attempt; six decimals"""


class NewTask(TypedDict):
    """Exactly one of `params` and `payload`, at most one of `run_at` and `delay_ms`. A task
    with `steps` may have neither of the first two, and no `run_at`, `delay_ms`,
    `expires_at` and `group`: it runs from the start, is never claimed, and ends once its
    steps have ended."""

    task_type: NotRequired[str]
    """The name by which workers claim"""
    params: NotRequired[JSON]
    """Any JSON but null; the bytes are kept as given. Up to 1 MiB"""
    payload: NotRequired[str]
    """Opaque bytes in base64, at least one, up to 1 MiB"""
    priority: NotRequired[int]
    """Higher is claimed first"""
    max_attempts: NotRequired[int]
    """Default: the type's, else the server's: 10 in a new cluster. 0: no limit"""
    delay_ms: NotRequired[int]
    """Not claimable for so long"""
    backoff: NotRequired[Backoff]
    lease_ms: NotRequired[int]
    """The lease of its claims, unless extended. Default: the type's, else the server's:
    30000"""
    labels: NotRequired[dict[str, str]]
    """Names of 1 to 64 bytes without a colon, values of up to 64 bytes, both without
    control characters"""
    group: NotRequired[str]
    """Tasks of one group and type are claimed one at a time, in order of submission"""
    share_key: NotRequired[str]
    """The share of its type's tasks that it belongs to, as a tenant: the type's
    `max_claimed_per_key` applies to each, and they take turns if it is `fair`"""
    wait_for_signal_ms: NotRequired[int]
    """It is `blocked` until POST /api/tasks/{id}/signal, and fails with the error `no
    signal came in time` if none comes for so long: from the submit, the retry, or the end
    of the last step that it depends on. Not of a task with steps"""
    attributes: NotRequired[dict[str, JSON]]
    """An object that describes params or payload, up to 1 MiB; workers get it unchanged"""
    idempotency_key: NotRequired[str]
    """1 to 256 bytes without control characters"""
    unique: NotRequired[Literal["exists", "active", "replace", "window"]]
    """`exists`: the key is taken while the task exists; `active`: only until it ends;
    `replace`: as `active`, and a task of the type that is pending or scheduled with the key
    gets this one's params or payload, attributes, run_at or delay_ms, and expires_at (not
    for tasks with steps); `window`: for unique_ms after the submit, whether the task is
    there or not. All but `exists` need an idempotency_key"""
    unique_ms: NotRequired[int]
    """With `unique: window`, and only then: for how long the key is taken"""
    run_at: NotRequired[str]
    """Not claimable before"""
    expires_at: NotRequired[str]
    """Not claimed by then, it fails with the error `expired before it was claimed`. It may
    have passed already, but must be after run_at, and after the end of delay_ms. Default:
    never"""
    expires_again: NotRequired[bool]
    """With `expires_at`, and only then: true lets it expire also while it waits after a
    claim, with the error `expired before it was claimed again`"""
    retention_ms: NotRequired[int]
    """How long it is kept after its end. 0: removed at once; -1: until deleted. Default:
    the type's, else the server's: 86400000, or 1209600000 if it failed"""
    traceparent: NotRequired[str]
    """Its W3C trace context, and its steps'; neither id is all zeros. Default: that of the
    request's header"""
    steps: NotRequired[list[NewStep]]
    """They depend on each other without a cycle"""
    finalize: NotRequired[Literal["auto", "claim"]]
    """How it ends once its steps have ended: by itself (auto), or by a processor (claim).
    Only with steps"""
    on_step_failure: NotRequired[Literal["fail", "continue"]]
    """When a step has failed or was cancelled. `fail`: all that are not claimed are
    cancelled, and the claimed ones are asked to; `continue`: those that depend on it,
    directly or through others, are cancelled. Only with steps"""


class NewTasks(TypedDict):
    """Many tasks to submit"""

    tasks: list[JSON]
    """A NewTask each; an invalid one is refused, the others are submitted"""


class NewStep(TypedDict):
    """A task with a name, as a NewTask, without what is for the task that has the steps:
    `idempotency_key`, `unique`, `unique_ms`, `attributes`, `traceparent`, `retention_ms`,
    `steps`, `finalize`, `on_step_failure`"""

    step: str
    """A step's name, unique among the steps of a task"""
    depends_on: NotRequired[list[str]]
    """Steps of the same task, earlier or later ones, each once, that have to be completed
    before"""
    task_type: NotRequired[str]
    """The name by which workers claim"""
    params: NotRequired[JSON]
    """Any JSON but null; the bytes are kept as given. Up to 1 MiB"""
    payload: NotRequired[str]
    """Opaque bytes in base64, at least one, up to 1 MiB"""
    priority: NotRequired[int]
    """Higher is claimed first"""
    max_attempts: NotRequired[int]
    """Default: the type's, else the server's: 10 in a new cluster. 0: no limit"""
    delay_ms: NotRequired[int]
    """Not claimable for so long"""
    backoff: NotRequired[Backoff]
    lease_ms: NotRequired[int]
    """The lease of its claims, unless extended. Default: the type's, else the server's:
    30000"""
    labels: NotRequired[dict[str, str]]
    """Names of 1 to 64 bytes without a colon, values of up to 64 bytes, both without
    control characters"""
    group: NotRequired[str]
    """Tasks of one group and type are claimed one at a time, in order of submission"""
    share_key: NotRequired[str]
    """The share of its type's tasks that it belongs to, as a tenant: the type's
    `max_claimed_per_key` applies to each, and they take turns if it is `fair`"""
    wait_for_signal_ms: NotRequired[int]
    """It is `blocked` until POST /api/tasks/{id}/signal, and fails with the error `no
    signal came in time` if none comes for so long: from the submit, the retry, or the end
    of the last step that it depends on. Not of a task with steps"""
    run_at: NotRequired[str]
    """Not claimable before"""
    expires_at: NotRequired[str]
    """Not claimed by then, it fails; it counts while the step is blocked, too. Must be
    after the end of delay_ms"""
    expires_again: NotRequired[bool]
    """With `expires_at`, and only then: true lets it expire also while it waits after a
    claim, with the error `expired before it was claimed again`"""


class TaskOrigin(TypedDict):
    """Of a dead letter the task of which it is a copy"""

    task_type: str
    """The name by which workers claim"""
    id: int
    """A task's id: it grows and is never used again"""


class TaskInForce(TypedDict):
    """On GET of one task, what counts for it: its own, else its type's, else the server's.
    A parent has only retention_ms, a step has all but that"""

    lease_ms: NotRequired[int]
    """Of a claim that asks for none"""
    backoff: NotRequired[WholeBackoff | None]
    retention_ms: NotRequired[int]


class Task(TypedDict):
    """Fields that are not required are left out where they are not set"""

    id: int
    """A task's id: it grows and is never used again"""
    task_type: str
    """The name by which workers claim"""
    params: NotRequired[JSON]
    """Any JSON but null; the bytes are kept as given. Up to 1 MiB"""
    payload: NotRequired[str]
    """The bytes that were submitted"""
    attributes: NotRequired[dict[str, JSON]]
    """What was said of params or payload, where these are shown"""
    priority: int
    """Higher is claimed first"""
    max_attempts: int
    """0: no limit"""
    attempts: int
    """Claims; a release takes its own off"""
    idempotency_key: NotRequired[str]
    """1 to 256 bytes without control characters"""
    unique: NotRequired[Literal["active", "window"]]
    """`active`: the key is taken only until the task ends; `window`: for unique_ms after
    its submit"""
    unique_ms: NotRequired[int]
    """For how long the key is taken after the submit"""
    status: Status
    """blocked: a step whose dependencies have not completed; running: a task with steps"""
    run_at: NotRequired[str]
    """The time that it waits for, or last waited for"""
    expires_at: NotRequired[str]
    """Not claimed by then, it fails"""
    expires_again: NotRequired[bool]
    """It fails also if it waits then, or later, after a claim. Absent: false"""
    backoff: NotRequired[WholeBackoff]
    retention_ms: NotRequired[int]
    """How long it is kept after its end. 0: removed at once; -1: until deleted. Default:
    the type's, else the server's: 86400000, or 1209600000 if it failed"""
    lease_ms: NotRequired[int]
    """The lease of its claims, unless extended. Default: the type's, else the server's:
    30000"""
    labels: NotRequired[dict[str, str]]
    """Names of 1 to 64 bytes without a colon, values of up to 64 bytes, both without
    control characters"""
    group: NotRequired[str]
    """Tasks of one group and type are claimed one at a time, in order of submission"""
    share_key: NotRequired[str]
    """The share of its type's tasks that it belongs to, as a tenant: the type's
    `max_claimed_per_key` applies to each, and they take turns if it is `fair`"""
    wait_for_signal_ms: NotRequired[int]
    """It is `blocked` until POST /api/tasks/{id}/signal, and fails with the error `no
    signal came in time` if none comes for so long: from the submit, the retry, or the end
    of the last step that it depends on. Not of a task with steps"""
    signal_until: NotRequired[str]
    """Of a task that waits for its signal: when it fails without it"""
    signalled: NotRequired[Literal[True]]
    """Its signal has come"""
    signal: NotRequired[JSON]
    """What the task is handed: any JSON, up to 64 KiB; null is none. The bytes are kept as
    given"""
    traceparent: NotRequired[str]
    """The trace context of the request that submitted it"""
    worker_id: str | None
    """The claim's holder; of a completed or failed task the one that ended it; of a
    finalized one the processor"""
    claim_token: int | None
    """The fencing token of the current or, after the end, the last claim; null while
    pending"""
    claimed_at: str | None
    """Of the last claim, also while pending"""
    lease_expires_at: str | None
    """Of the current claim, by the server's calendar: an estimate"""
    lease_remaining_ms: int | None
    """The time left of the current claim as of this answer"""
    created_at: str
    """When it was submitted"""
    updated_at: str
    """When it changed last"""
    completed_at: str | None
    """When it ended"""
    result: NotRequired[JSON]
    """Any JSON but null; the bytes are kept as given. Up to 1 MiB"""
    result_payload: NotRequired[str]
    """Bytes that it was completed with"""
    error: NotRequired[str]
    """Of the last failure; kept after a later success"""
    origin: NotRequired[TaskOrigin]
    """Of a dead letter the task of which it is a copy"""
    moved_to_id: NotRequired[int]
    """The task as which it goes on: of a failed task its dead letter, of a cancelled one
    the copy that a move of dead letters made. It cannot be retried"""
    progress: NotRequired[JSON]
    """Any JSON but null; the bytes are kept as given. Up to 4 KiB"""
    cancel_requested: bool
    """A cancel was asked for while it is claimed, or of a task with steps that goes on"""
    in_force: NotRequired[TaskInForce]
    """On GET of one task, what counts for it: its own, else its type's, else the server's.
    A parent has only retention_ms, a step has all but that"""
    attempts_log: NotRequired[list[Attempt]]
    """On GET of one task: the last 20 claims, oldest first"""
    steps: NotRequired[list[Step]]
    """Of a task with steps, in their order: where one task is answered, not in lists,
    claims and batches"""
    finalize: NotRequired[Literal["auto", "claim"]]
    """Of a task with steps"""
    on_step_failure: NotRequired[Literal["fail", "continue"]]
    """Of a task with steps"""
    parent_id: NotRequired[int]
    """Of a step: the task that it belongs to"""
    step: NotRequired[str]
    """A step's name, unique among the steps of a task"""
    depends_on: NotRequired[list[str]]
    """Of a step: those that have to be completed before"""
    claim_state: NotRequired[Literal["live", "ended"]]
    """In the answer to a repeated claim: whether it still lasts"""
    dependencies: NotRequired[dict[str, StepResult]]
    """With `include` of its claim: the results of the steps that it depends on, by name; of
    all claims of an answer up to 4 MiB together"""
    dependencies_left_out: NotRequired[list[str]]
    """The steps that it depends on whose results are not in `dependencies`, because they
    had no room: read them with GET /api/tasks?parent_id=...&include=result"""


class Step(TypedDict):
    """An object of the API."""

    step: str
    """A step's name, unique among the steps of a task"""
    id: int
    """A task's id: it grows and is never used again"""
    task_type: str
    """The name by which workers claim"""
    status: Literal["pending", "scheduled", "blocked", "claimed", "completed", "failed", "cancelled"]
    depends_on: list[str]
    error: NotRequired[str]
    """Of its last failure, cut at 1 KiB"""


class FinalizationAttempt(TypedDict):
    """An object of the API."""

    processor_id: str
    """Names who finalizes tasks with steps"""
    claimed: bool
    already_claimed_by: str | None
    """The worker or, of a task with steps, the processor; null: no holder"""
    reason: Literal["already_claimed", "already_complete", "not_ready"] | None
    """null if it was claimed"""
    task_state: TaskState
    """The progress of a task with steps: evaluating_results once all of them have ended. Of
    a task without steps, its status"""
    message: FinalizationMessage
    """The same in words"""
    attempted_at: str
    """RFC 3339 in UTC, with milliseconds"""


class Attempt(TypedDict):
    """One claim of a task"""

    worker_id: str
    """The worker; no two that run at the same time should have the same"""
    claim_token: int
    """A claim's fencing token: it grows with every claim in the cluster. Without it only
    the worker is checked"""
    claimed_at: str
    """When it began"""
    ended_at: str | None
    """null while it lasts"""
    outcome: Literal["completed", "failed", "released", "expired", "retried", "cancelled"] | None
    """How it ended; null while it lasts"""
    error: NotRequired[str]
    """The error of the attempt"""


class StepResult(TypedDict):
    """The result of a completed step, which may have none"""

    result: NotRequired[JSON]
    """Any JSON but null; the bytes are kept as given. Up to 1 MiB"""
    result_payload: NotRequired[str]
    """Bytes that it was completed with"""


class SubmitAnswer(TypedDict):
    """An object of the API."""

    success: Literal[True]
    task: KnownTask
    created: bool
    """false: the task has had the key before"""
    replaced: NotRequired[Literal[True]]
    """With `unique: replace`: the task waited with the key, and has what this request
    submitted now"""
    same_request: NotRequired[Literal[False]]
    """Its type or its params differ from this request's"""


class SubmitManyAnswer(TypedDict):
    """An object of the API."""

    success: Literal[True]
    results: list[SubmitResult]
    """The result of each, in order"""
    failed: int
    """The number of refused tasks"""


class TaskAnswer(TypedDict):
    """An object of the API."""

    success: Literal[True]
    task: KnownTask
    repeated: NotRequired[Literal[True]]
    """The same claim, or the same request, had done the same before"""


class ClaimAnswer(TypedDict):
    """Of a claim without `limit`"""

    success: Literal[True]
    task: ClaimedTask
    message: Literal["Task claimed successfully"]
    """The same in words"""
    repeated: NotRequired[Literal[True]]
    """The same claim, or the same request, had done the same before"""


class ClaimManyAnswer(TypedDict):
    """Of a claim with `limit`"""

    success: Literal[True]
    tasks: list[ClaimedTask]
    """Empty if there was nothing to claim"""
    message: Literal["Task claimed successfully", "No pending tasks available"]
    """The same in words"""
    repeated: NotRequired[Literal[True]]
    """The same claim, or the same request, had done the same before"""


class CompleteAnswer(TypedDict):
    """An object of the API."""

    success: Literal[True]
    task: KnownTask
    submitted: NotRequired[list[Submitted]]
    """With `submit`: the result of each, in order"""
    claimed: NotRequired[NextClaimed]
    repeated: NotRequired[Literal[True]]
    """The same claim, or the same request, had done the same before"""


class ExtendAnswer(TypedDict):
    """An object of the API."""

    success: Literal[True]
    task: KnownTask
    lease_remaining_ms: int
    """The time left of the lease; count from before the request was sent"""
    cancel_requested: bool
    """Somebody asked for the task to be cancelled: stop, then fail or release it"""
    repeated: NotRequired[Literal[True]]
    """The same claim, or the same request, had done the same before"""


class DeleteAnswer(TypedDict):
    """An object of the API."""

    success: Literal[True]
    deleted: Literal[1]
    """The number of deleted tasks"""


class Claim(TypedDict):
    """An object of the API."""

    worker_id: str
    """The worker; no two that run at the same time should have the same"""
    task_types: NotRequired[list[str]]
    """Empty or absent: any"""
    max_attempts_remaining: NotRequired[int]
    """Only tasks with more attempts left than this; those without a limit always have"""
    sort_by: NotRequired[Literal["priority", "created_at", "random"]]
    """By priority, equal ones oldest first; by age, which is the lowest id: a requeued task
    keeps its place; or any of them"""
    sort_order: NotRequired[str]
    """asc or desc, in any case. Default: desc for priority, asc for created_at. Ignored for
    random"""
    limit: NotRequired[int]
    """The maximum number of tasks, answered as tasks. Without it: one task, answered as
    task"""
    lease_ms: NotRequired[int]
    """The lease, unless extended. Default: the task's, else its type's, else the server's:
    30000"""
    claim_request_id: NotRequired[str]
    """1 to 128 bytes without control characters; a repeat with it gets the same answer"""
    claim_request_place: NotRequired[int]
    """Among the claims with this claim_request_id, each of which is repeated by itself; not
    with wait_ms"""
    include: NotRequired[list[Literal["dependencies"]]]
    """`dependencies`: a claimed step is shown with the results of the steps that it depends
    on"""
    wait_ms: NotRequired[int]
    """The maximum wait while there is no claimable task"""


class FinalizationClaim(TypedDict):
    """An object of the API."""

    processor_id: str
    """Names who finalizes tasks with steps"""
    timeout_seconds: NotRequired[int]
    """The timeout of the claim"""


class NextClaim(TypedDict):
    """The next claim, in the same step. `worker_id` is by default that of the complete"""

    worker_id: NotRequired[str]
    """The worker; no two that run at the same time should have the same"""
    task_types: NotRequired[list[str]]
    """Empty or absent: any"""
    max_attempts_remaining: NotRequired[int]
    """Only tasks with more attempts left than this; those without a limit always have"""
    sort_by: NotRequired[Literal["priority", "created_at", "random"]]
    """By priority, equal ones oldest first; by age, which is the lowest id: a requeued task
    keeps its place; or any of them"""
    sort_order: NotRequired[str]
    """asc or desc, in any case. Default: desc for priority, asc for created_at. Ignored for
    random"""
    limit: NotRequired[int]
    """The maximum number of tasks, answered as tasks. Without it: one task, answered as
    task"""
    lease_ms: NotRequired[int]
    """The lease, unless extended. Default: the task's, else its type's, else the server's:
    30000"""
    claim_request_id: NotRequired[str]
    """1 to 128 bytes without control characters; a repeat with it gets the same answer"""
    claim_request_place: NotRequired[int]
    """Among the claims with this claim_request_id, each of which is repeated by itself; not
    with wait_ms"""
    include: NotRequired[list[Literal["dependencies"]]]
    """`dependencies`: a claimed step is shown with the results of the steps that it depends
    on"""


class SubmitOp(TypedDict):
    """A submit of a task in a batch"""

    task_type: NotRequired[str]
    """The name by which workers claim"""
    params: NotRequired[JSON]
    """Any JSON but null; the bytes are kept as given. Up to 1 MiB"""
    payload: NotRequired[str]
    """Opaque bytes in base64, at least one, up to 1 MiB"""
    priority: NotRequired[int]
    """Higher is claimed first"""
    max_attempts: NotRequired[int]
    """Default: the type's, else the server's: 10 in a new cluster. 0: no limit"""
    delay_ms: NotRequired[int]
    """Not claimable for so long"""
    backoff: NotRequired[Backoff]
    lease_ms: NotRequired[int]
    """The lease of its claims, unless extended. Default: the type's, else the server's:
    30000"""
    labels: NotRequired[dict[str, str]]
    """Names of 1 to 64 bytes without a colon, values of up to 64 bytes, both without
    control characters"""
    group: NotRequired[str]
    """Tasks of one group and type are claimed one at a time, in order of submission"""
    share_key: NotRequired[str]
    """The share of its type's tasks that it belongs to, as a tenant: the type's
    `max_claimed_per_key` applies to each, and they take turns if it is `fair`"""
    wait_for_signal_ms: NotRequired[int]
    """It is `blocked` until POST /api/tasks/{id}/signal, and fails with the error `no
    signal came in time` if none comes for so long: from the submit, the retry, or the end
    of the last step that it depends on. Not of a task with steps"""
    attributes: NotRequired[dict[str, JSON]]
    """An object that describes params or payload, up to 1 MiB; workers get it unchanged"""
    idempotency_key: NotRequired[str]
    """1 to 256 bytes without control characters"""
    unique: NotRequired[Literal["exists", "active", "replace", "window"]]
    """`exists`: the key is taken while the task exists; `active`: only until it ends;
    `replace`: as `active`, and a task of the type that is pending or scheduled with the key
    gets this one's params or payload, attributes, run_at or delay_ms, and expires_at (not
    for tasks with steps); `window`: for unique_ms after the submit, whether the task is
    there or not. All but `exists` need an idempotency_key"""
    unique_ms: NotRequired[int]
    """With `unique: window`, and only then: for how long the key is taken"""
    run_at: NotRequired[str]
    """Not claimable before"""
    expires_at: NotRequired[str]
    """Not claimed by then, it fails with the error `expired before it was claimed`. It may
    have passed already, but must be after run_at, and after the end of delay_ms. Default:
    never"""
    expires_again: NotRequired[bool]
    """With `expires_at`, and only then: true lets it expire also while it waits after a
    claim, with the error `expired before it was claimed again`"""
    retention_ms: NotRequired[int]
    """How long it is kept after its end. 0: removed at once; -1: until deleted. Default:
    the type's, else the server's: 86400000, or 1209600000 if it failed"""
    traceparent: NotRequired[str]
    """Its W3C trace context, and its steps'; neither id is all zeros. Default: that of the
    request's header"""
    steps: NotRequired[list[NewStep]]
    """They depend on each other without a cycle"""
    finalize: NotRequired[Literal["auto", "claim"]]
    """How it ends once its steps have ended: by itself (auto), or by a processor (claim).
    Only with steps"""
    on_step_failure: NotRequired[Literal["fail", "continue"]]
    """When a step has failed or was cancelled. `fail`: all that are not claimed are
    cancelled, and the claimed ones are asked to; `continue`: those that depend on it,
    directly or through others, are cancelled. Only with steps"""
    op: Literal["submit"]


class ClaimOp(TypedDict):
    """A claim of tasks in a batch"""

    worker_id: str
    """The worker; no two that run at the same time should have the same"""
    task_types: NotRequired[list[str]]
    """Empty or absent: any"""
    max_attempts_remaining: NotRequired[int]
    """Only tasks with more attempts left than this; those without a limit always have"""
    sort_by: NotRequired[Literal["priority", "created_at", "random"]]
    """By priority, equal ones oldest first; by age, which is the lowest id: a requeued task
    keeps its place; or any of them"""
    sort_order: NotRequired[str]
    """asc or desc, in any case. Default: desc for priority, asc for created_at. Ignored for
    random"""
    limit: NotRequired[int]
    """The maximum number of tasks, answered as tasks. Without it: one task, answered as
    task"""
    lease_ms: NotRequired[int]
    """The lease, unless extended. Default: the task's, else its type's, else the server's:
    30000"""
    claim_request_id: NotRequired[str]
    """1 to 128 bytes without control characters; a repeat with it gets the same answer"""
    claim_request_place: NotRequired[int]
    """Among the claims with this claim_request_id, each of which is repeated by itself; not
    with wait_ms"""
    include: NotRequired[list[Literal["dependencies"]]]
    """`dependencies`: a claimed step is shown with the results of the steps that it depends
    on"""
    op: Literal["claim"]


class CompleteOp(TypedDict):
    """A complete in a batch"""

    worker_id: str
    """The worker; no two that run at the same time should have the same"""
    claim_token: NotRequired[int]
    """A claim's fencing token: it grows with every claim in the cluster. Without it only
    the worker is checked"""
    result: NotRequired[JSON]
    """Any JSON but null; the bytes are kept as given. Up to 1 MiB"""
    result_payload: NotRequired[str]
    """Opaque bytes in base64, up to 1 MiB; not together with result. Empty bytes mean no
    result"""
    submit: NotRequired[list[NewTask]]
    """Follow-up tasks"""
    claim: NotRequired[NextClaim]
    late: NotRequired[bool]
    """Also if the claim is over by its lease or a fail, but the task still waits to be
    claimed again. Only with claim_token"""
    op: Literal["complete"]
    id: int
    """A task's id: it grows and is never used again"""


class FailOp(TypedDict):
    """A fail in a batch"""

    worker_id: str
    """The worker; no two that run at the same time should have the same"""
    claim_token: NotRequired[int]
    """A claim's fencing token: it grows with every claim in the cluster. Without it only
    the worker is checked"""
    error: str
    """The error, cut at 16 KiB, at 256 bytes while memory is full; without U+0000"""
    retry_in_ms: NotRequired[int]
    """Instead of the backoff; not together with permanent"""
    permanent: NotRequired[bool]
    """No more attempts"""
    op: Literal["fail"]
    id: int
    """A task's id: it grows and is never used again"""


class ExtendOp(TypedDict):
    """An extend in a batch"""

    worker_id: str
    """The worker; no two that run at the same time should have the same"""
    claim_token: NotRequired[int]
    """A claim's fencing token: it grows with every claim in the cluster. Without it only
    the worker is checked"""
    lease_ms: NotRequired[int]
    """The lease lasts so long from now. Default: the length that the claim has"""
    progress: NotRequired[JSON]
    """Any JSON but null; the bytes are kept as given. Up to 4 KiB"""
    exact: NotRequired[bool]
    """The lease ends then even if it would have lasted longer: to have a task come back
    soon, with its attempt counted"""
    op: Literal["extend"]
    id: int
    """A task's id: it grows and is never used again"""


class ReleaseOp(TypedDict):
    """A release in a batch"""

    worker_id: str
    """The worker; no two that run at the same time should have the same"""
    claim_token: NotRequired[int]
    """A claim's fencing token: it grows with every claim in the cluster. Without it only
    the worker is checked"""
    delay_ms: NotRequired[int]
    """Not claimable for so long"""
    op: Literal["release"]
    id: int
    """A task's id: it grows and is never used again"""


class RetryOp(TypedDict):
    """A retry in a batch"""

    claim_token: NotRequired[int]
    """A claim's fencing token: it grows with every claim in the cluster. Without it only
    the worker is checked"""
    add_attempts: NotRequired[int]
    """Added to a limited max_attempts first"""
    op: Literal["retry"]
    id: int
    """A task's id: it grows and is never used again"""


class CancelOp(TypedDict):
    """A cancel in a batch"""

    op: Literal["cancel"]
    id: int
    """A task's id: it grows and is never used again"""


class DeleteOp(TypedDict):
    """A delete in a batch"""

    op: Literal["delete"]
    id: int
    """A task's id: it grows and is never used again"""


class Filter(TypedDict):
    """As the parameters of a list. One that selects nothing is refused without `all`"""

    status: NotRequired[Status]
    """blocked: a step whose dependencies have not completed; running: a task with steps"""
    task_type: NotRequired[str]
    """The name by which workers claim"""
    worker_id: NotRequired[str]
    """A worker_id or, of a task with steps, a processor_id"""
    parent_id: NotRequired[int]
    """A task's id: it grows and is never used again"""
    labels: NotRequired[dict[str, str]]
    """Names of 1 to 64 bytes without a colon, values of up to 64 bytes, both without
    control characters"""
    share_key: NotRequired[str]
    """The share of its type's tasks that it belongs to, as a tenant: the type's
    `max_claimed_per_key` applies to each, and they take turns if it is `fair`"""
    created_after: NotRequired[str]
    """Exclusive"""
    created_before: NotRequired[str]
    """Exclusive"""
    error_group: NotRequired[str]
    """A group of failed tasks, as GET /api/failures shows it"""


class FailureGroup(TypedDict):
    """The failed tasks of one type whose errors differ in nothing but numbers, ids and
    quoted parts"""

    group: str
    """A group of failed tasks, as GET /api/failures shows it"""
    task_type: str
    """The name by which workers claim"""
    signature: str
    """The line of the error that says what went wrong: the first that is not blank, or of a
    traceback or stack of Python, Node, Java, Go, Ruby or PHP the innermost exception. Up to
    200 bytes, with `<n>` in place of a number (also of several with no more than a point,
    comma, colon, dash or slash between them), `<hex>` of a hexadecimal word with 0x or of 8
    digits and more, `<uuid>` of a UUID, `<text>` of a quoted part; empty without an error"""
    example: str
    """The error of the latest one, up to 1,024 bytes"""
    count: int
    """Of the tasks that were looked at"""
    first_at: str
    """When the earliest of them failed"""
    last_at: str
    """When the latest of them failed"""
    ids: list[int]
    """The latest 5, the latest first"""
    by_hour: list[int]
    """How many of them failed in each of the 24 hours before the answer, the oldest first"""


class Counts(TypedDict):
    """By status"""

    pending: int
    scheduled: int
    blocked: int
    claimed: int
    running: int
    completed: int
    failed: int
    cancelled: int


class Share(TypedDict):
    """The tasks of a type with one `share_key`. A setting that is null is as its type says"""

    share_key: str
    pending: int
    """Its pending tasks, without those behind others of their group"""
    claimed: int
    oldest_wait_ms: int
    """How long the oldest of the pending tasks has been pending; 0 without one"""
    state: Literal["open", "paused", "limited", "rate_limited"]
    """Whether its tasks can be claimed, as far as it is up to the share: `limited` has as
    many claims as it may have"""
    opens_at: str | None
    """When its rate limit lets a claim through; null: now"""
    paused: bool
    """Nothing is claimed, but by id"""
    max_claimed: int | None
    """The maximum number of its tasks that are claimed at a time"""
    weight: int
    """How many turns it gets if the type is `fair`, compared with others"""
    rate_limit: float | None
    """Claims per second"""


class TypeDeadLetter(TypedDict):
    """Where copies of tasks go whose last attempt failed"""

    task_type: str
    """Another type"""
    max_attempts: NotRequired[int]
    """The last attempt is this one, even if the task may have more. Default: as many as the
    task may have"""


class Type(TypedDict):
    """A setting that is not set is null"""

    task_type: str
    """The name by which workers claim"""
    counts: Counts
    oldest_pending_age_ms: int
    """0 if none is pending"""
    submitted_per_s: float
    """Over the last 60 s; 0 in the answer to a PATCH, as the other two"""
    completed_per_s: float
    """Over the last 60 s"""
    failed_per_s: float
    """For good, over the last 60 s"""
    oldest_wait_ms: int
    """How long the oldest pending task has been pending: since its submit, its time, or
    since it was pending again; 0 if none is"""
    oldest_pending_id: int | None
    """That task, of which GET /api/tasks/{id}/why says why it waits; null: none is pending"""
    paused: bool
    """Nothing is claimed, but by id"""
    max_claimed: int | None
    """The maximum number of its tasks that are claimed at a time"""
    max_claimed_per_key: int | None
    """The maximum number of its tasks with the same `share_key` that are claimed at a time"""
    rate_limit_per_key: float | None
    """Claims per second of the tasks with the same `share_key`"""
    fair: bool
    """Share keys take turns in claims by priority"""
    rate_limit: float | None
    """Claims per second"""
    delay_ms: int | None
    """Of a task submitted with neither a delay nor a time"""
    dead_letter: TypeDeadLetter | None
    """Where copies of tasks go whose last attempt failed"""
    lease_ms: int | None
    """This and the following: defaults of its tasks"""
    max_attempts: int | None
    backoff: WholeBackoff | None
    retention_ms: int | None


class DefaultsAnswerDefaults(TypedDict):
    """An object of the API."""

    lease_ms: int
    max_attempts: int
    """0: no limit"""
    backoff: WholeBackoff | None
    retention_ms: int
    """0: gone at once; -1: until deleted"""
    failed_retention_ms: int
    """Of tasks that failed"""


class DefaultsAnswerLimits(TypedDict):
    """Of GET alone: what the node takes that answers, the leader. All nodes should have the
    same `limits`"""

    body_bytes: int
    """Of a request's body"""
    value_bytes: int
    """Of `params`, `payload`, `result` and `result_payload` each"""
    error_bytes: int
    """Of a fail's `error`, which is cut there"""
    depth: int
    """Levels of nested JSON"""
    items: int
    """Tasks or operations of one request"""


class DefaultsAnswer(TypedDict):
    """An object of the API."""

    success: Literal[True]
    defaults: DefaultsAnswerDefaults
    limits: NotRequired[DefaultsAnswerLimits]
    """Of GET alone: what the node takes that answers, the leader. All nodes should have the
    same `limits`"""


class Events(TypedDict):
    """An object of the API."""

    success: Literal[True]
    events: list[Event]
    """Oldest first"""
    next: str
    """The place to go on after, as `after` takes it"""
    place: str
    """The trail's position: all events before the answer are up to it"""


class ReasonHolders(TypedDict):
    """An object of the API."""

    task_id: int
    """A task's id: it grows and is never used again"""
    worker_id: str
    """The worker; no two that run at the same time should have the same"""


class Reason(TypedDict):
    """The fields after the first two depend on the code"""

    code: Literal["type_paused", "limit_reached", "rate_limited", "share_paused", "share_limit_reached", "share_rate_limited", "scheduled", "blocked", "signal", "group_behind", "no_worker", "queued"]
    """Why"""
    message: str
    """The same in words"""
    share_key: NotRequired[str]
    """Of share_paused, share_limit_reached and share_rate_limited: the task's"""
    holders: NotRequired[list[ReasonHolders]]
    """Of limit_reached and share_limit_reached: the holders of the claims"""
    at: NotRequired[str]
    """Of rate_limited and share_rate_limited: when the next claim may be made; of signal:
    when the task fails without"""
    run_at: NotRequired[str]
    """Of scheduled"""
    steps: NotRequired[list[str]]
    """Of blocked: the first 100 that it depends on and that have not completed"""
    id: NotRequired[int]
    """Of group_behind: the task that comes first"""
    last_asked_at: NotRequired[str | None]
    """Of no_worker: when a worker last asked for its type; null if none has since this
    leader leads"""
    ahead: NotRequired[int]
    """Of queued: how many tasks are claimed before it"""


class Worker(TypedDict):
    """An object of the API."""

    worker_id: str
    """The worker; no two that run at the same time should have the same"""
    claimed: int
    """The number of claims that it holds"""
    task_ids: list[int]
    """Of its first 100 claims"""
    last_seen_at: str | None
    """Its last call that the leader has got, or the last change of a task that it holds"""


class NewSchedule(TypedDict):
    """Exactly one of `cron` and `every_ms`"""

    task: ScheduledTask
    cron: NotRequired[str]
    """Five fields (minute, hour, day of month, month, day of week), or @hourly, @daily
    (@midnight), @weekly, @monthly, @yearly (@annually). A field is `*` or a list of
    numbers, ranges `a-b`, and steps of either (`a-b/s`, `a/s`). Months and days of the week
    have names (JAN, SUN); Sunday is 0 and 7. A day of month may be `L` (the last) or `15W`
    (the working day nearest to the 15th), a day of week `5L` (the last Friday) or `1#2`
    (the second Monday). If both days are given either will do, unless one of the fields
    begins with `*`"""
    timezone: NotRequired[str]
    """IANA name; only with cron"""
    every_ms: NotRequired[int]
    """From one slot to the next; the first one is that long after the PUT"""
    overlap: NotRequired[Literal["skip", "allow"]]
    """skip: a slot is passed over while the last task has not ended"""
    catch_up: NotRequired[Literal["one", "skip"]]
    """Of slots that were missed: one task for all of them, or with skip the last one if it
    is at most 60 s late; all others are passed over and counted in skipped"""
    paused: NotRequired[bool]
    """No slots"""


class ScheduleTask(TypedDict):
    """As given; what has its default is left out"""

    task_type: NotRequired[str]
    """The name by which workers claim"""
    params: NotRequired[JSON]
    """Any JSON but null; the bytes are kept as given. Up to 1 MiB"""
    payload: NotRequired[str]
    """Opaque bytes in base64, at least one, up to 1 MiB"""
    priority: NotRequired[int]
    """Higher is claimed first"""
    max_attempts: NotRequired[int]
    """Default: the type's, else the server's: 10 in a new cluster. 0: no limit"""
    delay_ms: NotRequired[int]
    """Not claimable for so long"""
    backoff: NotRequired[WholeBackoff]
    lease_ms: NotRequired[int]
    """The lease of its claims, unless extended. Default: the type's, else the server's:
    30000"""
    labels: NotRequired[dict[str, str]]
    """Names of 1 to 64 bytes without a colon, values of up to 64 bytes, both without
    control characters"""
    group: NotRequired[str]
    """Tasks of one group and type are claimed one at a time, in order of submission"""
    share_key: NotRequired[str]
    """The share of its type's tasks that it belongs to, as a tenant: the type's
    `max_claimed_per_key` applies to each, and they take turns if it is `fair`"""
    wait_for_signal_ms: NotRequired[int]
    """It is `blocked` until POST /api/tasks/{id}/signal, and fails with the error `no
    signal came in time` if none comes for so long: from the submit, the retry, or the end
    of the last step that it depends on. Not of a task with steps"""
    retention_ms: NotRequired[int]
    """How long it is kept after its end. 0: removed at once; -1: until deleted. Default:
    the type's, else the server's: 86400000, or 1209600000 if it failed"""
    steps: NotRequired[list[ScheduledStep]]
    """Each slot submits the task with these steps. They depend on each other without a
    cycle"""
    finalize: NotRequired[Literal["auto", "claim"]]
    """How it ends once its steps have ended: by itself (auto), or by a processor (claim).
    Only with steps"""
    on_step_failure: NotRequired[Literal["fail", "continue"]]
    """When a step has failed or was cancelled. `fail`: all that are not claimed are
    cancelled, and the claimed ones are asked to; `continue`: those that depend on it,
    directly or through others, are cancelled. Only with steps"""
    unique: NotRequired[Literal["active"]]


class Schedule(TypedDict):
    """An object of the API."""

    name: str
    """The schedule's name"""
    task: ScheduleTask
    """As given; what has its default is left out"""
    cron: str | None
    """As given; null with every_ms"""
    every_ms: int | None
    """As given; null with cron"""
    timezone: str | None
    """Of cron"""
    overlap: Literal["skip", "allow"]
    """How to treat a slot while the last task has not ended"""
    catch_up: Literal["one", "skip"]
    """How to treat missed slots"""
    paused: bool
    """It has no slots"""
    next_run_at: str | None
    """The slot that it waits for; null while paused"""
    last_task_id: int | None
    """The task that it submitted last"""
    last_run_at: str | None
    """The slot of that task"""
    skipped: int
    """Slots passed over since it was set"""
    created_at: str
    """RFC 3339 in UTC, with milliseconds"""
    updated_at: str
    """RFC 3339 in UTC, with milliseconds"""


class WholeBackoff(TypedDict):
    """A backoff in an answer, in full"""

    initial_ms: int
    """After the first attempt. 0: no wait, regardless of the type's and the server's
    backoff"""
    max_ms: int
    """No longer than this, and not below initial_ms. Default: 3600000, or initial_ms if
    that is more"""
    factor: float
    """The delay grows by this factor with each further attempt; six decimals"""
    jitter: float
    """Up to this share is taken off, by a hash of task and attempt; six decimals"""


class ScheduledTask(TypedDict):
    """As a NewTask, without what can only be said of one task. Exactly one of `params` and
    `payload`; with `steps` it may have neither, and has no `delay_ms`, `group`, `share_key`
    and `wait_for_signal_ms`"""

    task_type: NotRequired[str]
    """The name by which workers claim"""
    params: NotRequired[JSON]
    """Any JSON but null; the bytes are kept as given. Up to 1 MiB"""
    payload: NotRequired[str]
    """Opaque bytes in base64, at least one, up to 1 MiB"""
    priority: NotRequired[int]
    """Higher is claimed first"""
    max_attempts: NotRequired[int]
    """Default: the type's, else the server's: 10 in a new cluster. 0: no limit"""
    delay_ms: NotRequired[int]
    """Not claimable for so long"""
    backoff: NotRequired[Backoff]
    lease_ms: NotRequired[int]
    """The lease of its claims, unless extended. Default: the type's, else the server's:
    30000"""
    labels: NotRequired[dict[str, str]]
    """Names of 1 to 64 bytes without a colon, values of up to 64 bytes, both without
    control characters"""
    group: NotRequired[str]
    """Tasks of one group and type are claimed one at a time, in order of submission"""
    share_key: NotRequired[str]
    """The share of its type's tasks that it belongs to, as a tenant: the type's
    `max_claimed_per_key` applies to each, and they take turns if it is `fair`"""
    wait_for_signal_ms: NotRequired[int]
    """It is `blocked` until POST /api/tasks/{id}/signal, and fails with the error `no
    signal came in time` if none comes for so long: from the submit, the retry, or the end
    of the last step that it depends on. Not of a task with steps"""
    retention_ms: NotRequired[int]
    """How long it is kept after its end. 0: removed at once; -1: until deleted. Default:
    the type's, else the server's: 86400000, or 1209600000 if it failed"""
    steps: NotRequired[list[ScheduledStep]]
    """Each slot submits the task with these steps. They depend on each other without a
    cycle"""
    finalize: NotRequired[Literal["auto", "claim"]]
    """How it ends once its steps have ended: by itself (auto), or by a processor (claim).
    Only with steps"""
    on_step_failure: NotRequired[Literal["fail", "continue"]]
    """When a step has failed or was cancelled. `fail`: all that are not claimed are
    cancelled, and the claimed ones are asked to; `continue`: those that depend on it,
    directly or through others, are cancelled. Only with steps"""


class ScheduledStep(TypedDict):
    """A step of a task that a schedule submits: as a NewStep, without `run_at`,
    `expires_at` and `expires_again`"""

    step: str
    """A step's name, unique among the steps of a task"""
    depends_on: NotRequired[list[str]]
    """Steps of the same task, earlier or later ones, each once, that have to be completed
    before"""
    task_type: NotRequired[str]
    """The name by which workers claim"""
    params: NotRequired[JSON]
    """Any JSON but null; the bytes are kept as given. Up to 1 MiB"""
    payload: NotRequired[str]
    """Opaque bytes in base64, at least one, up to 1 MiB"""
    priority: NotRequired[int]
    """Higher is claimed first"""
    max_attempts: NotRequired[int]
    """Default: the type's, else the server's: 10 in a new cluster. 0: no limit"""
    delay_ms: NotRequired[int]
    """Not claimable for so long"""
    backoff: NotRequired[Backoff]
    lease_ms: NotRequired[int]
    """The lease of its claims, unless extended. Default: the type's, else the server's:
    30000"""
    labels: NotRequired[dict[str, str]]
    """Names of 1 to 64 bytes without a colon, values of up to 64 bytes, both without
    control characters"""
    group: NotRequired[str]
    """Tasks of one group and type are claimed one at a time, in order of submission"""
    share_key: NotRequired[str]
    """The share of its type's tasks that it belongs to, as a tenant: the type's
    `max_claimed_per_key` applies to each, and they take turns if it is `fair`"""
    wait_for_signal_ms: NotRequired[int]
    """It is `blocked` until POST /api/tasks/{id}/signal, and fails with the error `no
    signal came in time` if none comes for so long: from the submit, the retry, or the end
    of the last step that it depends on. Not of a task with steps"""


class RemovedTask(TypedDict):
    """The part of a removed task that is remembered for 10 minutes"""

    id: int
    """A task's id: it grows and is never used again"""
    idempotency_key: NotRequired[str]
    """1 to 256 bytes without control characters"""
    status: Literal["completed", "failed", "cancelled"]
    worker_id: str | None
    """The worker or, of a task with steps, the processor; null: no holder"""
    claim_token: int | None


class Submitted(TypedDict):
    """An object of the API."""

    id: int
    """A task's id: it grows and is never used again"""
    created: bool
    """false: the task has had the key before"""
    replaced: NotRequired[Literal[True]]
    """With `unique: replace`: the task waited with the key, and has what this request
    submitted now"""
    same_request: NotRequired[Literal[False]]
    """Its type or its params differ from this request's"""


class NotSubmitted(TypedDict):
    """An object of the API."""

    error: str
    code: Literal["invalid_task", "payload_too_large"]
    message: str
    field: str


class NextClaimed(TypedDict):
    """The tasks that the `claim` of a complete got: `task`, or with `limit` `tasks`"""

    task: NotRequired[Union[Task, EndedClaim] | None]
    """null: there was nothing to claim"""
    tasks: NotRequired[list[ClaimedTask]]


class MinimalAnswerTask(TypedDict):
    """An object of the API."""

    id: int
    """A task's id: it grows and is never used again"""
    status: Status
    """blocked: a step whose dependencies have not completed; running: a task with steps"""


class MinimalAnswer(TypedDict):
    """Of an op of a batch with `return: minimal`: what its own call answers, but of the
    task that it is about the id and the status alone"""

    success: Literal[True]
    task: MinimalAnswerTask
    created: NotRequired[bool]
    """Of a submit; false: the key was taken"""
    replaced: NotRequired[Literal[True]]
    """Of a submit with `unique: replace`: the task waited with the key, and has what was
    submitted now"""
    same_request: NotRequired[Literal[False]]
    """Of a submit whose key was taken: the task has another type or other params"""
    submitted: NotRequired[list[Submitted]]
    """Of a complete with `submit`: the result of each, in order"""
    claimed: NotRequired[NextClaimed]
    lease_remaining_ms: NotRequired[int]
    """Of an extend: what the lease has left; count from before the request was sent"""
    cancel_requested: NotRequired[bool]
    """Of an extend: somebody asked for the task to be cancelled"""
    repeated: NotRequired[Literal[True]]
    """The same claim, or the same request, had done the same before"""


class Event(TypedDict):
    """One thing that happened. `INDEX.SUB` is its place in the trail"""

    index: int
    """Of the entry: it grows with each, and jumps where a cluster begins and where a backup
    is restored. It is no index of the log"""
    sub: int
    """Its number within the entry, from 0"""
    time: str
    """RFC 3339 in UTC, with milliseconds"""
    task_id: int | None
    """null of an operator's act"""
    event: EventName
    """The kind of event; GET /api/events explains each. Later versions may add others"""
    worker_id: str | None
    """Of the claim that the event is about, else null"""
    claim_token: int | None
    """Of the claim that the event is about, else null"""
    attempt: int | None
    """Which of the task's counted claims; null where the event is of none, nor of a
    finalization"""
    message: str
    """Details; may be """""


class EndedClaim(TypedDict):
    """The part of a removed task in the answer to a repeated claim"""

    id: int
    """A task's id: it grows and is never used again"""
    claim_token: int
    """A claim's fencing token: it grows with every claim in the cluster. Without it only
    the worker is checked"""
    claim_state: Literal["ended"]


class ListTasksAnswer(TypedDict):
    """An object of the API."""

    success: Literal[True]
    tasks: list[Task]
    """In the order that was asked for; without params, payload, result and result_payload
    unless asked for"""
    next_cursor: str | None
    """The start of the next page; null: the list has ended"""


class ActOnTasksBody(TypedDict):
    """An object of the API."""

    action: Literal["retry", "cancel", "delete"]
    """Done with each task as its own call would; what that refuses is left alone"""
    filter: NotRequired[Filter]
    all: NotRequired[bool]
    """All tasks: without a filter that selects it must be true, with one it is refused"""
    add_attempts: NotRequired[int]
    """Of retry: added to a limited max_attempts first"""
    dry_run: NotRequired[bool]
    """Change nothing: say how many match, how many of them the action could be done with,
    and why not with the others"""
    expect: NotRequired[int]
    """Do nothing unless this number of tasks matches"""


class ActOnTasksAnswerCannot(TypedDict):
    """Of a dry run: the number of tasks that it would not change, by reason: a refusal's
    code, or `nothing_to_do`"""

    forbidden: NotRequired[int]
    key_taken: NotRequired[int]
    max_attempts_reached: NotRequired[int]
    nothing_to_do: NotRequired[int]
    task_cancelled: NotRequired[int]
    task_completed: NotRequired[int]
    task_failed: NotRequired[int]
    task_not_terminal: NotRequired[int]


class ActOnTasksAnswer(TypedDict):
    """An object of the API."""

    success: Literal[True]
    matched: int
    """The number of matching tasks"""
    done: int
    """With how many it was done"""
    more: NotRequired[Literal[True]]
    """It stopped for time: repeat it"""
    can: NotRequired[int]
    """Of a dry run: with how many of them the action could be done now"""
    cannot: NotRequired[ActOnTasksAnswerCannot]
    """Of a dry run: the number of tasks that it would not change, by reason: a refusal's
    code, or `nothing_to_do`"""


class GetTaskByKeyAnswer(TypedDict):
    """An object of the API."""

    success: Literal[True]
    task: Task


class GetTaskAnswer(TypedDict):
    """An object of the API."""

    success: Literal[True]
    task: Task


class ChangeTaskBody(TypedDict):
    """An object of the API."""

    priority: NotRequired[int | None]
    """Higher is claimed first. null: 0"""
    run_at: NotRequired[str | None]
    """Not claimable before. null: at once"""
    labels: NotRequired[dict[str, str] | None]
    """They replace all; null: none"""
    share_key: NotRequired[str | None]
    """null: none. Not of a task with steps"""


class ClaimTaskBody(TypedDict):
    """An object of the API."""

    worker_id: str
    """The worker; no two that run at the same time should have the same"""
    lease_ms: NotRequired[int]
    """The lease, unless extended. Default: the task's, else its type's, else the server's:
    30000"""
    claim_request_id: NotRequired[str]
    """1 to 128 bytes without control characters; a repeat with it gets the same answer"""
    include: NotRequired[list[Literal["dependencies"]]]
    """`dependencies`: a claimed step is shown with the results of the steps that it depends
    on"""


class CompleteTaskBody(TypedDict):
    """An object of the API."""

    worker_id: str
    """The worker; no two that run at the same time should have the same"""
    claim_token: NotRequired[int]
    """A claim's fencing token: it grows with every claim in the cluster. Without it only
    the worker is checked"""
    result: NotRequired[JSON]
    """Any JSON but null; the bytes are kept as given. Up to 1 MiB"""
    result_payload: NotRequired[str]
    """Opaque bytes in base64, up to 1 MiB; not together with result. Empty bytes mean no
    result"""
    submit: NotRequired[list[NewTask]]
    """Follow-up tasks"""
    claim: NotRequired[NextClaim]
    late: NotRequired[bool]
    """Also if the claim is over by its lease or a fail, but the task still waits to be
    claimed again. Only with claim_token"""


class FailTaskBody(TypedDict):
    """An object of the API."""

    worker_id: str
    """The worker; no two that run at the same time should have the same"""
    claim_token: NotRequired[int]
    """A claim's fencing token: it grows with every claim in the cluster. Without it only
    the worker is checked"""
    error: str
    """The error, cut at 16 KiB, at 256 bytes while memory is full; without U+0000"""
    retry_in_ms: NotRequired[int]
    """Instead of the backoff; not together with permanent"""
    permanent: NotRequired[bool]
    """No more attempts"""


class ExtendTaskBody(TypedDict):
    """An object of the API."""

    worker_id: str
    """The worker; no two that run at the same time should have the same"""
    claim_token: NotRequired[int]
    """A claim's fencing token: it grows with every claim in the cluster. Without it only
    the worker is checked"""
    lease_ms: NotRequired[int]
    """The lease lasts so long from now. Default: the length that the claim has"""
    progress: NotRequired[JSON]
    """Any JSON but null; the bytes are kept as given. Up to 4 KiB"""
    exact: NotRequired[bool]
    """The lease ends then even if it would have lasted longer: to have a task come back
    soon, with its attempt counted"""


class ReleaseTaskBody(TypedDict):
    """An object of the API."""

    worker_id: str
    """The worker; no two that run at the same time should have the same"""
    claim_token: NotRequired[int]
    """A claim's fencing token: it grows with every claim in the cluster. Without it only
    the worker is checked"""
    delay_ms: NotRequired[int]
    """Not claimable for so long"""


class AddStepsBody(TypedDict):
    """An object of the API."""

    worker_id: str
    """The worker; no two that run at the same time should have the same"""
    claim_token: NotRequired[int]
    """A claim's fencing token: it grows with every claim in the cluster. Without it only
    the worker is checked"""
    steps: list[NewStep]


class AddStepsAnswer(TypedDict):
    """An object of the API."""

    success: Literal[True]
    parent_id: int
    """A task's id: it grows and is never used again"""
    added: int
    """How many of them are new"""
    steps: list[Step]
    repeated: NotRequired[Literal[True]]
    """The parent had all of them"""


class RetryTaskBody(TypedDict):
    """An object of the API."""

    claim_token: NotRequired[int]
    """A claim's fencing token: it grows with every claim in the cluster. Without it only
    the worker is checked"""
    add_attempts: NotRequired[int]
    """Added to a limited max_attempts first"""


class CancelTaskBody(TypedDict):
    """An object of the API."""



class SignalTaskBody(TypedDict):
    """An object of the API."""

    signal: NotRequired[JSON]
    """What the task is handed: any JSON, up to 64 KiB; null is none. The bytes are kept as
    given"""


class SignalTaskAnswer(TypedDict):
    """An object of the API."""

    success: Literal[True]
    task: Task
    same_signal: NotRequired[Literal[False]]
    """Of a repeated one: the task had been handed another signal"""
    repeated: NotRequired[Literal[True]]
    """The task had its signal"""


class ExplainTaskAnswer(TypedDict):
    """An object of the API."""

    success: Literal[True]
    reasons: list[Reason]
    """Each would stand against a claim if all others were gone"""
    ahead: int | None
    """The number of claimable tasks of its type and `share_key` that are claimed before it;
    null if it is not claimable"""


class GetFinalizationAnswer(TypedDict):
    """An object of the API."""

    success: Literal[True]
    attempts: list[FinalizationAttempt]
    claimed_by: str | None
    """The worker or, of a task with steps, the processor; null: no holder"""
    claim_expires_at: str | None
    """RFC 3339 in UTC, with milliseconds"""


class ClaimFinalizationAnswer(TypedDict):
    """An object of the API."""

    success: Literal[True]
    claimed: bool
    """Whether this processor has the claim now"""
    already_claimed_by: str | None
    """The worker or, of a task with steps, the processor; null: no holder"""
    task_state: TaskState
    """The progress of a task with steps: evaluating_results once all of them have ended. Of
    a task without steps, its status"""
    message: FinalizationMessage
    """The same in words"""
    claim_token: int | None
    """null unless claimed"""


class ExtendFinalizationBody(TypedDict):
    """An object of the API."""

    processor_id: str
    """Names who finalizes tasks with steps"""
    timeout_seconds: NotRequired[int]
    """Default: that of the claim"""


class ExtendFinalizationAnswer(TypedDict):
    """An object of the API."""

    success: Literal[True]
    extended: bool
    """Whether the processor has the claim"""


class ReleaseFinalizationBody(TypedDict):
    """An object of the API."""

    processor_id: str
    """Names who finalizes tasks with steps"""


class ReleaseFinalizationAnswer(TypedDict):
    """An object of the API."""

    success: Literal[True]
    released: bool
    """Whether it had the claim, or has finalized the task"""


class FinalizeTaskBody(TypedDict):
    """An object of the API."""

    processor_id: str
    """Names who finalizes tasks with steps"""
    claim_token: NotRequired[int]
    """A claim's fencing token: it grows with every claim in the cluster. Without it only
    the worker is checked"""
    outcome: Literal["completed", "failed"]
    """The task's new status"""
    result: NotRequired[JSON]
    """Any JSON but null; the bytes are kept as given. Up to 1 MiB"""
    error: NotRequired[str]
    """Why it failed, cut at 16 KiB, at 256 bytes while memory is full; without U+0000. Only
    with failed, as result is only with completed"""


class FinalizeTaskAnswer(TypedDict):
    """An object of the API."""

    success: Literal[True]
    action: Literal["completed", "failed", "cancelled"]
    """How the task ended"""
    already_finalized: bool
    """It had ended before"""
    task: KnownTask


class RunBatchBody(TypedDict):
    """An object of the API."""

    atomic: NotRequired[bool]
    """All of the ops, or none"""
    claim_request_id: NotRequired[str]
    """1 to 128 bytes without control characters; a repeat with it gets the same answer"""
    ops: list[Op]
    """Done in this order"""


class RunBatchAnswer(TypedDict):
    """An object of the API."""

    success: Literal[True]
    results: list[OpResult]
    failed: int
    """The number of refused ops"""


class ListTypesAnswerAll(TypedDict):
    """Of all types together"""

    counts: Counts
    oldest_pending_age_ms: int
    """0 if none is pending"""
    submitted_per_s: float
    """Over the last 60 s, as the other two; types that went are counted too"""
    completed_per_s: float
    failed_per_s: float
    """For good"""


class ListTypesAnswer(TypedDict):
    """An object of the API."""

    success: Literal[True]
    types: list[Type]
    total: int
    """The number of types"""
    matched: int
    """The number of types that match `name`, `attention` and `after`, regardless of `limit`"""
    next: JSON | None
    """`after` of the next page in the order `name`; null: the last page, or another order"""
    all: ListTypesAnswerAll
    """Of all types together"""


class GetTypeAnswer(TypedDict):
    """An object of the API."""

    success: Literal[True]
    type: Type


class ChangeTypeBodyDeadLetter(TypedDict):
    """When the last attempt of a task fails or expires, a copy of it is submitted with this
    type, in the same log entry. null: none"""

    task_type: str
    """Another type"""
    max_attempts: NotRequired[int]
    """The last attempt is this one, even if the task may have more. Default: as many as the
    task may have"""


class ChangeTypeBody(TypedDict):
    """An object of the API."""

    paused: NotRequired[bool | None]
    """No claims, but by id"""
    max_claimed: NotRequired[int | None]
    """The maximum number of its tasks that are claimed at a time. null: no limit"""
    max_claimed_per_key: NotRequired[int | None]
    """The maximum number of its tasks with the same `share_key` that are claimed at a time.
    null: no limit"""
    rate_limit_per_key: NotRequired[float | None]
    """As `rate_limit`, of the tasks with the same `share_key`. null: no limit"""
    fair: NotRequired[bool | None]
    """Share keys take turns in claims by priority. null: false"""
    rate_limit: NotRequired[float | None]
    """Claims per second, six decimals; up to a second's worth at once, at least one. null:
    no limit"""
    delay_ms: NotRequired[int | None]
    """Delay of the tasks submitted from now on with neither `delay_ms` nor `run_at`. null:
    none"""
    dead_letter: NotRequired[ChangeTypeBodyDeadLetter | None]
    """When the last attempt of a task fails or expires, a copy of it is submitted with this
    type, in the same log entry. null: none"""
    lease_ms: NotRequired[int | None]
    """Default of its tasks. null: the server's, 30000"""
    max_attempts: NotRequired[int | None]
    """Default of the tasks submitted from now on. 0: no limit; null: the server's, 3"""
    backoff: NotRequired[Backoff | None]
    retention_ms: NotRequired[int | None]
    """Default of its tasks. 0: gone at once; -1: until deleted; null: the server's,
    86400000, or 1209600000 if it failed"""


class ChangeTypeAnswer(TypedDict):
    """An object of the API."""

    success: Literal[True]
    type: Type


class ListSharesAnswer(TypedDict):
    """An object of the API."""

    success: Literal[True]
    shares: list[Share]
    next: str | None
    """`after` of the next page; null: the last page, or the order `pending`"""


class SetShareBody(TypedDict):
    """An object of the API."""

    paused: NotRequired[bool | None]
    """No claims, but by id"""
    max_claimed: NotRequired[int | None]
    """The maximum number of its tasks that are claimed at a time. null: the type's
    `max_claimed_per_key`"""
    weight: NotRequired[int | None]
    """How many turns it gets in a `fair` type, compared with others. null: 100"""
    rate_limit: NotRequired[float | None]
    """Claims per second, six decimals; up to a second's worth at once, at least one. null:
    the type's `rate_limit_per_key`"""


class SetShareAnswer(TypedDict):
    """An object of the API."""

    success: Literal[True]
    share: Share


class DeleteShareAnswer(TypedDict):
    """An object of the API."""

    success: Literal[True]
    share: Share


class ChangeDefaultsBody(TypedDict):
    """An object of the API."""

    lease_ms: NotRequired[int | None]
    """null: 30000"""
    max_attempts: NotRequired[int | None]
    """0: no limit; null: 3"""
    backoff: NotRequired[Backoff | None]
    retention_ms: NotRequired[int | None]
    """0: gone at once; -1: until deleted; null: 86400000, or 1209600000 if it failed"""


class ListWorkersAnswer(TypedDict):
    """An object of the API."""

    success: Literal[True]
    workers: list[Worker]


class ListFailuresAnswer(TypedDict):
    """An object of the API."""

    success: Literal[True]
    failures: list[FailureGroup]
    """The largest first; of equal ones that which failed last"""
    groups: int
    """The number of groups"""
    looked: int
    """The number of grouped tasks"""
    failed: int
    """The number of failed tasks that are kept, of the type"""
    next_cursor: str | None
    """The start of the next page; null: there are no older ones"""


class ListSchedulesAnswer(TypedDict):
    """An object of the API."""

    success: Literal[True]
    schedules: list[Schedule]
    next: JSON | None
    """`after` of the next page; null: the last page"""


class GetScheduleAnswer(TypedDict):
    """An object of the API."""

    success: Literal[True]
    schedule: Schedule


class SetScheduleAnswer(TypedDict):
    """An object of the API."""

    success: Literal[True]
    schedule: Schedule


class GetStatsAnswer(TypedDict):
    """An object of the API."""

    success: Literal[True]
    index: int
    """The index at which they are exact; of more than 500 types the later ones are as of a
    later one"""
    counts: Counts
    types: dict[str, Counts]
    """Of the first 10,000 types by name, those that have tasks"""
    types_left_out: int
    """The number of types that are not listed: GET /api/types has them in pages"""
    bytes: int
    """The memory of the state, estimated"""
    oldest_pending_age_ms: int
    """0 if none is pending"""


class GetHistoryAnswer(TypedDict):
    """An object of the API."""

    success: Literal[True]
    task_type: JSON | None
    """null: all tasks"""
    interval_ms: Literal[60000]
    """A minute"""
    since: JSON | None
    """The beginning of the first minute that is known; null: nothing was submitted yet"""
    to: JSON | None
    """The end of the last one, which is under way; null: there is none"""
    kept: bool
    """Whether the type has a history; false also for one that had no tasks"""
    submitted: list[int]
    """Tasks submitted in the minute"""
    completed: list[int]
    """Tasks completed in the minute"""
    failed: list[int]
    """Tasks failed for good in the minute"""
    pending: list[int]
    """Tasks pending at its end"""
    claimed: list[int]
    """Tasks claimed at its end"""
    oldest_pending_age_ms: list[int]
    """The age of the oldest pending task at its end; 0 if none was pending"""
    waited_p50_ms: list[int | None]
    """Of the tasks claimed in it, how long a half had been pending at most, right to about
    an eighth: since they became so, or were changed while they were. null: none was claimed"""
    waited_p99_ms: list[int | None]
    """The same of 99 of 100"""
    ran_p50_ms: list[int | None]
    """Of the tasks completed in it by their workers, how long a half had been claimed at
    most, right to about an eighth. null: no such tasks"""
    ran_p99_ms: list[int | None]
    """The same of 99 of 100"""


class ListSlotsAnswer(TypedDict):
    """An object of the API."""

    success: Literal[True]
    slots: list[str]


TaskState = Literal["not_found", "waiting_for_steps", "evaluating_results", "complete", "failed", "cancelled", "pending", "scheduled", "claimed", "completed", "blocked"]
"""The progress of a task with steps: evaluating_results once all of them have ended. Of a
task without steps, its status"""

FinalizationMessage = Literal["Successfully claimed for finalization", "Claim extended", "Task already claimed for finalization", "Task already complete", "Task not found", "Task has no completed or failed steps"]
"""The same in words"""

KnownTask = Union[Task, RemovedTask]
"""The task after the call; if it was removed since it ended, the part that is still known"""

Op = Union[SubmitOp, ClaimOp, CompleteOp, FailOp, ExtendOp, ReleaseOp, RetryOp, CancelOp, DeleteOp]
"""An op with the fields of the corresponding call and, except for submit and claim, `id`,
the task"""

OpResult = Union[SubmitAnswer, ClaimAnswer, ClaimManyAnswer, CompleteAnswer, TaskAnswer, ExtendAnswer, DeleteAnswer, MinimalAnswer, Refusal]
"""The answer of the corresponding call, or its refusal"""

Status = Literal["pending", "scheduled", "blocked", "claimed", "running", "completed", "failed", "cancelled"]
"""blocked: a step whose dependencies have not completed; running: a task with steps"""

Code = Literal["invalid_request", "invalid_task", "invalid_worker_id", "unauthorized", "forbidden", "task_not_found", "no_pending_tasks", "schedule_not_found", "not_found", "method_not_allowed", "task_already_claimed", "task_not_claimed", "task_not_claimable", "wrong_worker", "stale_claim", "task_completed", "task_failed", "task_cancelled", "task_not_terminal", "max_attempts_reached", "steps_unfinished", "count_mismatch", "key_taken", "cluster_not_empty", "membership_refused", "place_ahead", "events_gone", "payload_too_large", "unsupported_encoding", "rate_limited", "headers_too_large", "internal", "overloaded", "no_leader", "shutting_down", "outcome_unknown"]
"""Stable identifier for programs"""

ClaimedTask = Union[Task, EndedClaim]
"""The task with its claim, in `claim_token`; of a repeated claim whose task was removed
since, what is still known"""

SubmitResult = Union[Submitted, NotSubmitted]
"""The result of one of many submits"""

EventName = Literal["submitted", "scheduled", "claimed", "released", "failed", "requeued", "lease_expired", "completed", "retried", "cancel_requested", "cancelled", "deleted", "expired", "signalled", "steps_added", "finalization_claimed", "finalized", "type_changed", "schedule_set", "schedule_deleted", "node_set", "node_removed", "level_raised", "trail_changed", "member_added", "member_removed", "member_promoted", "member_demoted", "leadership_transferred", "snapshot_taken", "backup_saved", "restored", "keys_reloaded", "join_token_made", "join_token_used", "join_token_revoked", "join_token_expired", "backup_begun", "backup_broken_off", "restore_begun", "restore_broken_off", "defaults_changed", "share_changed"]
"""The kind of event; GET /api/events explains each. Later versions may add others"""

STATUS: Final[Mapping[str, int]] = {
    "invalid_request": 400,
    "invalid_task": 400,
    "invalid_worker_id": 400,
    "unauthorized": 401,
    "forbidden": 403,
    "task_not_found": 404,
    "no_pending_tasks": 404,
    "schedule_not_found": 404,
    "not_found": 404,
    "method_not_allowed": 405,
    "task_already_claimed": 409,
    "task_not_claimed": 409,
    "task_not_claimable": 409,
    "wrong_worker": 409,
    "stale_claim": 409,
    "task_completed": 409,
    "task_failed": 409,
    "task_cancelled": 409,
    "task_not_terminal": 409,
    "max_attempts_reached": 409,
    "steps_unfinished": 409,
    "count_mismatch": 409,
    "key_taken": 409,
    "cluster_not_empty": 409,
    "membership_refused": 409,
    "place_ahead": 409,
    "events_gone": 410,
    "payload_too_large": 413,
    "unsupported_encoding": 415,
    "rate_limited": 429,
    "headers_too_large": 431,
    "internal": 500,
    "overloaded": 503,
    "no_leader": 503,
    "shutting_down": 503,
    "outcome_unknown": 504,
}
"""The HTTP status of each code."""
