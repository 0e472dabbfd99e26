"""The errors that calls raise.

Every error of a call is a ClaimqError. Catch the class of a family to decide what to do, and
look at `code` where it matters which one it was.

    ClaimqError
    ├── OutcomeUnknown      it may have been done, or may still be: repeat it with its key
    ├── NotAvailable        nothing was done; the cluster could not be reached or cannot now
    │   └── RateLimited     the API key has made its requests
    ├── NotAuthorized       the API key is unknown, or its role does not allow the call
    ├── Invalid             the request is malformed, `field` says where
    │   └── TooLarge        it is larger than the server takes
    ├── NotFound            there is no such task, schedule or path
    ├── Conflict            the state does not allow it
    │   └── StaleClaim      the claim is over: stop working on the task
    ├── EventsGone          the events asked for are not kept any more
    ├── ServerFault         a bug of the server
    ├── SubmitManyError     some of many tasks were not submitted
    └── Closed              the client was closed
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ._calls import Submitted


class ClaimqError(Exception):
    """An error of a call. Its text says what happened and what to do."""

    code: str
    """What programs go by: a code of docs/api.md, "" if a server did not give one."""
    message: str
    """What happened, for people."""
    advice: str
    """What to do, for people; "" if nothing is known."""
    status: int
    """The status of HTTP; 0 if there was no answer."""
    request_id: str
    """What the server's log calls the request."""
    field: str
    """The field, header or parameter that is wrong, as tasks[3].priority; "" if none is."""
    retry_after: float
    """How many seconds the server asks to wait before a repeat; 0 if it does not say."""
    details: Mapping[str, Any]
    """The whole body of the refusal, including the fields of its code. Empty without a body."""
    _doubted: bool = False
    # An earlier try of the call may have been done.

    def __init__(
        self,
        message: str,
        *,
        code: str = "",
        advice: str = "",
        status: int = 0,
        request_id: str = "",
        field: str = "",
        retry_after: float = 0.0,
        details: Mapping[str, Any] | None = None,
    ) -> None:
        """Take what is known of the error."""
        super().__init__(message)
        self.message = message
        self.code = code
        self.advice = advice
        self.status = status
        self.request_id = request_id
        self.field = field
        self.retry_after = retry_after
        self.details = details or {}

    def __str__(self) -> str:
        """Return what happened, the code, and what to do."""
        text = self.message
        if self.code:
            text += f" ({self.code})"
        elif self.status:
            text += f" (HTTP status {self.status})"
        if self.advice and self.advice != self.message:
            text += f": {self.advice}"
        return text


class OutcomeUnknown(ClaimqError):
    """The call may or may not have been done, or may still be done.

    A repeat settles it: a submit with the same key finds the task that the first one made.
    `__cause__` is the error of the last try.
    """


class NotAvailable(ClaimqError):
    """Nothing was done: no node could be reached, or the cluster has no leader, is
    overloaded or shuts down. Try again later."""


class RateLimited(NotAvailable):
    """Nothing was done: the API key has made as many requests as it may."""


class NotAuthorized(ClaimqError):
    """The API key is missing or unknown, or its role or task types do not allow the call."""


class Invalid(ClaimqError):
    """The request is malformed; `field` names what is wrong. A repeat gets the same."""


class TooLarge(Invalid):
    """The body, or the field in `field`, is larger than the server takes."""


class NotFound(ClaimqError):
    """There is no such task, schedule or path; a task may have been removed."""


class Conflict(ClaimqError):
    """The state does not allow it: `code` says why, `details` has the task's status."""


class StaleClaim(Conflict):
    """The claim is over, or another worker holds the task. Nothing was changed."""


class EventsGone(ClaimqError):
    """The events asked for are not kept any more; `details["oldest"]` is the first that is."""


class ServerFault(ClaimqError):
    """A bug of the server; its log has the reason under `request_id`."""


class Closed(ClaimqError):
    """The client was closed."""


class SubmitManyError(ClaimqError):
    """Some tasks of submit_many were not submitted, or perhaps not.

    `results` has the outcome of each task, in order: a Submitted, or the error of it. Submit
    those with an error again, with the same keys, unless the error is Invalid.
    """

    results: Sequence[Submitted | ClaimqError]

    def __init__(self, results: Sequence[Submitted | ClaimqError]) -> None:
        """Take the outcome of each task."""
        errors = [r for r in results if isinstance(r, ClaimqError)]
        super().__init__(f"{len(errors)} of {len(results)} tasks were not submitted: {errors[0]}")
        self.results = results


_FAMILIES: dict[str, type[ClaimqError]] = {
    "invalid_request": Invalid,
    "invalid_task": Invalid,
    "invalid_worker_id": Invalid,
    "method_not_allowed": Invalid,
    "unsupported_encoding": Invalid,
    "payload_too_large": TooLarge,
    "headers_too_large": TooLarge,
    "unauthorized": NotAuthorized,
    "forbidden": NotAuthorized,
    "task_not_found": NotFound,
    "schedule_not_found": NotFound,
    "not_found": NotFound,
    "no_pending_tasks": NotFound,
    "task_already_claimed": Conflict,
    "task_not_claimed": Conflict,
    "task_not_claimable": Conflict,
    "task_completed": Conflict,
    "task_failed": Conflict,
    "task_cancelled": Conflict,
    "task_not_terminal": Conflict,
    "max_attempts_reached": Conflict,
    "steps_unfinished": Conflict,
    "count_mismatch": Conflict,
    "key_taken": Conflict,
    "cluster_not_empty": Conflict,
    "membership_refused": Conflict,
    "place_ahead": Conflict,
    "wrong_worker": StaleClaim,
    "stale_claim": StaleClaim,
    "events_gone": EventsGone,
    "rate_limited": RateLimited,
    "internal": ServerFault,
    "overloaded": NotAvailable,
    "no_leader": NotAvailable,
    "shutting_down": NotAvailable,
    "outcome_unknown": OutcomeUnknown,
}


def family(code: str, status: int) -> type[ClaimqError]:
    """Return the class of a refusal; of a code of a later version it goes by the status."""
    known = _FAMILIES.get(code)
    if known is not None:
        return known
    if code:
        by_status = {401: NotAuthorized, 403: NotAuthorized, 404: NotFound, 409: Conflict}
        if status in by_status:
            return by_status[status]
        return Invalid if 400 <= status < 500 else NotAvailable if status == 503 else ClaimqError
    return NotAvailable
