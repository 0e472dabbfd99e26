"""Typed handlers: what a program does for tasks of which type, and how it submits them."""

from __future__ import annotations

import inspect
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property
from typing import Any, Generic, Literal, ParamSpec, TypeVar, cast

from . import _options, types
from ._async_client import AsyncClient
from ._calls import Submitted
from ._client import Client
from ._context import Permanent, RetryAfter, Snooze
from ._json import encode as to_json
from ._task import Backoff, Seconds, new_task

P = ParamSpec("P")
R = TypeVar("R")

CONCURRENCY_MAX = 1_000
"""Bounds how many tasks a process takes at once, and how many types it handles."""

Decode = Callable[[bytes], Mapping[str, Any]]
"""Makes the keyword arguments of a handler from the JSON of a task's params."""

Encode = Callable[[Mapping[str, Any]], Any]
"""Makes the params of a task, anything that json.dumps takes, from the arguments."""


@dataclass(frozen=True)
class Options:
    """The options of a submit, as in new_task. None: the default of the type or the server."""

    key: str | None = None
    unique: Literal["exists", "active", "replace", "window"] | None = None
    unique_for: Seconds | None = None
    delay: Seconds | None = None
    run_at: datetime | None = None
    expires_at: datetime | None = None
    expires_again: bool | None = None
    priority: int | None = None
    max_attempts: int | None = None
    lease: Seconds | None = None
    backoff: Backoff | None = None
    retention: Seconds | None = None
    labels: Mapping[str, str] | None = None
    attributes: Mapping[str, types.JSON] | None = None
    group: str | None = None
    share_key: str | None = None
    wait_for_signal: Seconds | None = None
    traceparent: str | None = None


@dataclass(frozen=True)
class Task(Generic[P, R]):
    """A handler with its task type: calling it calls the handler, as in a unit test.

    submit and its kin take the handler's own arguments, and a type checker holds them to its
    signature. They are sent as a JSON object by name, so other languages can submit the same.
    """

    app: App
    function: Callable[P, R]
    type: str
    concurrency: int | None
    timeout: float | None
    decode: Decode | None
    encode: Encode | None
    submits_with: Options = field(default_factory=Options)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Call the handler."""
        return self.function(*args, **kwargs)

    @cached_property
    def is_async(self) -> bool:
        """Whether the handler is an async def."""
        return inspect.iscoroutinefunction(self.function)

    def options(
        self,
        *,
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
    ) -> Task[P, R]:
        """Return the task with other options for its submits; new_task says what they mean.

        send_mail.options(delay=60, key="mail-7").submit(to="ada@example.org")
        """
        given: dict[str, Any] = {k: v for k, v in locals().items() if k != "self"}
        changed = {name: value for name, value in given.items() if value is not None}
        return replace(self, submits_with=replace(self.submits_with, **changed))

    def new(self, *args: P.args, **kwargs: P.kwargs) -> types.NewTask:
        """Make a task that is not submitted yet: for submit_many, a batch, a step, or as a
        follow-up, which current().then takes.

        Raises:
            TypeError: The arguments do not fit the handler.
            Invalid: The server would refuse the task: `field` says where.
        """
        bound = inspect.signature(self.function).bind(*args, **kwargs)
        params: Any = _by_name(bound)
        if self.encode is not None:
            params = self.encode(params)
        options = {name: getattr(self.submits_with, name) for name in Options.__annotations__}
        return new_task(self.type, params, **options)

    def submit(self, *args: P.args, **kwargs: P.kwargs) -> Submitted:
        """Submit a task. Raises what Client.submit raises, and TypeError for arguments that
        do not fit the handler."""
        return self.app.client.submit_task(self.new(*args, **kwargs))

    async def submit_async(self, *args: P.args, **kwargs: P.kwargs) -> Submitted:
        """Submit a task from an event loop. Raises what submit raises."""
        return await self.app.async_client.submit_task(self.new(*args, **kwargs))

    def arguments(self, params: object) -> dict[str, Any]:
        """Return the handler's keyword arguments for a task's params.

        Raises:
            Permanent: They do not fit, and would not at another attempt.
        """
        decoded: Any = params
        if self.decode is not None:
            try:
                decoded = self.decode(to_json(params))
            except (Permanent, RetryAfter, Snooze):
                raise
            except Exception as e:
                raise self._unfit(f"decode raised {type(e).__name__}: {e}") from e
        if not isinstance(decoded, Mapping):
            raise self._unfit(f"they are a {type(decoded).__name__}, no object")
        arguments = dict(cast("Mapping[str, Any]", decoded))
        required, known = self._parameters
        if not required <= arguments.keys():
            raise self._unfit(f"without {_listed(required - arguments.keys())}")
        if known is not None and not arguments.keys() <= known:
            raise self._unfit(f"it has no {_listed(arguments.keys() - known)}")
        return arguments

    @cached_property
    def _parameters(self) -> tuple[set[str], set[str] | None]:
        """The arguments that the handler must have, and those that it can; None: any."""
        parameters = inspect.signature(self.function).parameters.values()
        open_ended = any(p.kind is p.VAR_KEYWORD for p in parameters)
        named = [p for p in parameters if p.kind is not p.VAR_KEYWORD]
        required = {p.name for p in named if p.default is p.empty}
        return required, None if open_ended else {p.name for p in named}

    def _unfit(self, why: str) -> Permanent:
        name = getattr(self.function, "__qualname__", repr(self.function))
        return Permanent(f"params of {self.type} do not fit its handler {name}: {why}")


def _listed(names: set[str]) -> str:
    return ", ".join(f"argument {name!r:.100}" for name in sorted(names, key=str)[:10])


def _by_name(bound: inspect.BoundArguments) -> dict[str, Any]:
    """Return arguments by their names, of **kwargs by those of the caller."""
    named: dict[str, Any] = {}
    for name, value in bound.arguments.items():
        kind = bound.signature.parameters[name].kind
        if kind is inspect.Parameter.VAR_KEYWORD:
            named.update(value)
        else:
            named[name] = value
    return named


class App:
    """The handlers of a program, and the clients by which it submits tasks.

        app = App()

        @app.task("mail", concurrency=5, timeout=60)
        def send_mail(to: str, subject: str = "") -> dict[str, str]:
            ...

    `claimq work --serve -- python3 -m claimq.run MODULE:app` runs it.
    """

    def __init__(
        self,
        *,
        concurrency: int = 10,
        client: Client | None = None,
        async_client: AsyncClient | None = None,
    ) -> None:
        """Make an app without handlers.

        Args:
            concurrency: How many tasks one process takes at once in all, 1 to 1,000. Handlers
                that are no async def run in this number of threads.
            client: What submit uses. None: Client(), made when it is first used.
            async_client: What submit_async uses. None: AsyncClient(), the same way.

        Raises:
            ValueError: concurrency is out of bounds.
        """
        self.concurrency = _checked("concurrency", concurrency)
        self.tasks: dict[str, Task[Any, Any]] = {}
        self._client = client
        self._async_client = async_client
        self._lock = threading.Lock()

    @property
    def client(self) -> Client:
        """What submit uses."""
        with self._lock:
            if self._client is None:
                self._client = Client()
            return self._client

    @client.setter
    def client(self, client: Client) -> None:
        self._client = client

    @property
    def async_client(self) -> AsyncClient:
        """What submit_async uses."""
        with self._lock:
            if self._async_client is None:
                self._async_client = AsyncClient()
            return self._async_client

    @async_client.setter
    def async_client(self, client: AsyncClient) -> None:
        self._async_client = client

    def task(
        self,
        task_type: str,
        *,
        concurrency: int | None = None,
        timeout: float | None = None,
        decode: Decode | None = None,
        encode: Encode | None = None,
    ) -> Callable[[Callable[P, R]], Task[P, R]]:
        """Make a function the handler of a type: a decorator.

        Params are its arguments by name. Its return value is the task's result, as JSON; bytes
        are kept unchanged, None means no result. An exception fails the attempt, with the
        traceback as its error: Permanent for good, RetryAfter sets the time of the next
        attempt, Snooze gives the task back. An `async def` runs on the event loop, another
        function in a thread.

        Args:
            task_type: The type.
            concurrency: How many tasks of the type a process takes at once; None: as the app.
            timeout: Seconds that one may take. Then it is told to stop; if it does not, the
                process is killed. None: what claimq work --timeout says.
            decode: Makes the arguments of the JSON that was submitted, as a function that
                validates it. None: json.loads.
            encode: Makes what is submitted of the arguments. None: they are themselves.

        Raises:
            ValueError: The type has a handler already or is no name of one, or a number is
                out of bounds.
            TypeError: The function cannot be called by names alone.
        """
        if not _options.TYPE.holds(task_type):
            raise ValueError(f"task type {task_type!r:.100}: it must be {_options.TYPE.text}")
        if concurrency is not None:
            _checked("concurrency", concurrency)
        if timeout is not None and not 0 < timeout <= _options.TIME_MAX:
            most = f"at most a year, {_options.TIME_MAX}"
            raise ValueError(f"timeout is {timeout}: it must be more than 0 seconds, and {most}")

        def register(function: Callable[P, R]) -> Task[P, R]:
            if task_type in self.tasks:
                raise ValueError(f"the type {task_type} has a handler already")
            if len(self.tasks) >= CONCURRENCY_MAX:
                raise ValueError(f"an app has at most {CONCURRENCY_MAX} handlers")
            for name, parameter in inspect.signature(function).parameters.items():
                if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.VAR_POSITIONAL):
                    raise TypeError(f"{name} has no name in params: make it a plain argument")
            task = Task(self, function, task_type, concurrency, timeout, decode, encode)
            self.tasks[task_type] = task
            return task

        return register


def _checked(name: str, number: int) -> int:
    if not 1 <= number <= CONCURRENCY_MAX or number != int(number):
        raise ValueError(f"{name} is {number}: it must be an integer, 1 to {CONCURRENCY_MAX}")
    return number
