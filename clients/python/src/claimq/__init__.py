"""claimq: a client for producers and typed handlers for workers.

    from claimq import App, Client

See docs/python.md.
"""

from . import errors, types
from ._app import App, Options, Task
from ._async_client import AsyncClient
from ._calls import Signalled, Submitted
from ._client import Client
from ._context import Cancelled, Context, Permanent, RetryAfter, Snooze, current
from ._task import Backoff, Seconds, new_step, new_task
from .errors import (
    ClaimqError,
    Closed,
    Conflict,
    EventsGone,
    Invalid,
    NotAuthorized,
    NotAvailable,
    NotFound,
    OutcomeUnknown,
    RateLimited,
    ServerFault,
    StaleClaim,
    SubmitManyError,
    TooLarge,
)

__all__ = [
    "App",
    "AsyncClient",
    "Backoff",
    "Cancelled",
    "ClaimqError",
    "Client",
    "Closed",
    "Conflict",
    "Context",
    "EventsGone",
    "Invalid",
    "NotAuthorized",
    "NotAvailable",
    "NotFound",
    "Options",
    "OutcomeUnknown",
    "Permanent",
    "RateLimited",
    "RetryAfter",
    "Seconds",
    "ServerFault",
    "Signalled",
    "Snooze",
    "StaleClaim",
    "SubmitManyError",
    "Submitted",
    "Task",
    "TooLarge",
    "current",
    "errors",
    "new_step",
    "new_task",
    "types",
]
