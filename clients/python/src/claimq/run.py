"""Runs the handlers of an app: python -m claimq.run MODULE:APP.

`claimq work --serve -- python3 -m claimq.run myapp.worker:app` starts it and hands it tasks.
With --task it runs one handler without claimq, to try it or to debug it.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import sys
from collections.abc import Sequence
from typing import Any

from . import _serve
from ._app import App
from ._context import Context
from ._outcome import Done, Failed
from .testing import run_task


def load(name: str) -> App:
    """Return the app that MODULE:APP names; without :APP it is called app.

    Raises:
        ValueError: There is no such app.
        ImportError: There is no such module, or what it imports.
    """
    module, _, attribute = name.partition(":")
    attribute = attribute or "app"
    app = getattr(importlib.import_module(module), attribute, None)
    if not isinstance(app, App):
        raise ValueError(f"{module} has no App called {attribute}")
    return app


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
    except (ValueError, ModuleNotFoundError) as e:
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
    sock = _serve.connect()
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
    context._report = lambda value: print("progress:", json.dumps(value), file=sys.stderr)
    outcome = run_task(app.tasks[task_type], context, params)
    if isinstance(outcome, Done):
        for task in outcome.follow_ups:
            print("submits:", json.dumps(task), file=sys.stderr)
        is_bytes = isinstance(outcome.result, (bytes, bytearray))
        print(repr(outcome.result) if is_bytes else json.dumps(outcome.result))
        return 0
    if isinstance(outcome, Failed):
        print(outcome.error, file=sys.stderr)
        return 100 if outcome.permanent else 1
    print(f"snoozed for {outcome.seconds:g} s", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
