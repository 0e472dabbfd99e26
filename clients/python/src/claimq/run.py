"""Runs the handlers of an app: python -m claimq.run MODULE:APP.

`claimq work --serve -- python3 -m claimq.run myapp.worker:app` starts it and hands it tasks.
With --task it runs one handler without claimq, to try it or to debug it.
"""

from __future__ import annotations

import argparse
import base64
import importlib
import json
import os
import sys
from collections.abc import Sequence
from typing import Any

from . import _serve
from ._app import App
from ._context import Context
from .testing import run_task


def load(name: str) -> App:
    """Return the app that MODULE:APP names; without :APP it is called app.

    Exceptions of the module's import are passed on.

    Raises:
        NoApp: There is no such module, or no such app in it.
    """
    module, _, attribute = name.partition(":")
    attribute = attribute or "app"
    if not all(map(str.isidentifier, module.split("."))):
        raise NoApp(f"{module!r} is no module: it must be a name, as myapp.worker")
    try:
        imported = importlib.import_module(module)
    except ModuleNotFoundError as e:
        if e.name is None or not f"{module}.".startswith(f"{e.name}."):
            raise  # what the module imports is missing
        raise NoApp(f"{e}, in {os.getcwd()} or elsewhere in Python's path") from e
    app = getattr(imported, attribute, None)
    if not isinstance(app, App):
        raise NoApp(f"{module} has no App called {attribute}")
    return app


class NoApp(Exception):
    """The command line names no app."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Do what the command line says, and return the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m claimq.run",
        description="Run the handlers of an app, for claimq work --serve.",
    )
    parser.add_argument("app", metavar="MODULE:APP", help="where the app is; APP is app if left out")
    parser.add_argument("--task", metavar="TYPE", help="run the handler of TYPE once, without claimq")
    parser.add_argument("--params", metavar="JSON", default="{}", help="its params (default: {})")
    given = parser.parse_args(arguments)
    if "" not in sys.path and os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        app = load(given.app)
    except NoApp as e:
        parser.error(str(e))
    if given.task is not None:
        if given.task not in app.tasks:
            parser.error(f"no handler of the type {given.task}: there are {sorted(app.tasks)}")
        try:
            params = json.loads(given.params)
        except ValueError as e:
            parser.error(f"--params is no JSON: {e}")
        return _once(app, given.task, params)
    if not app.tasks:
        parser.error(f"{given.app} has no handlers")
    is_child = _serve.ENV_FD in os.environ
    try:
        sock = _serve.connect()
    except ValueError as e:
        parser.error(str(e))
    if sock is None:
        parser.error(
            "claimq is not there: start this by `claimq work --serve -- COMMAND`, or set"
            " CLAIMQ_SOCKET to the socket of its --listen, or run one handler with --task"
        )
    if not _serve.serve(app, sock, signals=is_child):
        print("claimq.run: claimq has gone, and handlers did not end", file=sys.stderr)
        sys.stderr.flush()
        os._exit(1)  # an exit would wait for their threads
    return 0


def _once(app: App, task_type: str, params: Any) -> int:
    """Run one handler, and say how it ended."""
    context = Context(id=0, token=0, type=task_type, attempt=1)
    context._report = lambda value: print(
        "progress:", _serve.progress(value, _serve.LIMITS).decode(), file=sys.stderr
    )
    outcome = run_task(app.tasks[task_type], context, params)
    said = json.loads(_serve.answer((0, 0), outcome, _serve.LIMITS))
    if said["kind"] == "fail":
        print(said["error"], file=sys.stderr)
        return 100 if said.get("permanent") else 1
    if said["kind"] == "snooze":
        print(f"snoozed for {said['ms'] / 1000:g} s", file=sys.stderr)
        return 1
    for task in said.get("submit", ()):
        print("submits:", json.dumps(task), file=sys.stderr)
    payload = said.get("result_payload")
    print(base64.b64decode(payload) if payload is not None else json.dumps(said.get("result")))
    return 0


if __name__ == "__main__":
    sys.exit(main())
