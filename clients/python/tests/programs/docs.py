"""Runs the Python of pages, one block after the other, in one program against real nodes.

    docs.py PAGE...

It prints LEADER where the leader is to be killed, and goes on once it reads a line: when an
example first calls a node, and while a worker is at work. Functions named test_ run as tests,
those with fixtures by pytest. The block that begins with a file's name is saved there, and the
page's commands of claimq.run run on it. Django and FastAPI are not there: stand-ins have what
the examples use of them.
"""

from __future__ import annotations

import asyncio
import inspect
import re
import shlex
import signal
import subprocess
import sys
import tempfile
import types
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from claimq import Client, _aio, _http

LEADER = "-- kill the leader"

called = False  # the example has called a node


def kill_leader() -> None:
    print(LEADER, flush=True)
    assert sys.stdin.readline(), "the leader was not killed"


def at_first_call(transport: Any) -> None:
    """Have the leader killed when an example first sends something."""
    send = transport.send

    def killed(self: Any, command: Any) -> Any:
        global called
        if not called:
            called = True
            kill_leader()
        return send(self, command)

    transport.send = killed


def example(run: Callable[[], object], *, calls: bool | None = None) -> None:
    """Run an example. calls says whether it must, or must not, call a node."""
    global called
    called = False
    run()
    assert calls is None or called == calls


def stand_ins() -> None:
    database = types.ModuleType("django.db")
    database.transaction = types.SimpleNamespace(  # type: ignore[attr-defined]
        atomic=nullcontext, on_commit=lambda submit: submit()
    )
    sys.modules["django"], sys.modules["django.db"] = types.ModuleType("django"), database
    web = types.ModuleType("fastapi")

    class FastAPI:
        def post(self, path: str) -> Callable[[Any], Any]:
            return lambda function: function

    web.FastAPI = FastAPI  # type: ignore[attr-defined]
    sys.modules["fastapi"] = web


def main() -> None:
    stand_ins()
    at_first_call(_http.Transport)
    at_first_call(_aio.Transport)
    for page in sys.argv[1:]:
        run_page(page, Path(page).read_text())


def run_page(page: str, text: str) -> None:
    names: dict[str, Any] = {"__name__": "__main__"}
    program = ""
    blocks = re.findall(r"^```python\n(.*?)^```$", text, re.S | re.M)
    assert blocks, f"{page} has no Python"
    for block in blocks:
        code = compile(block, page, "exec")
        example(lambda: exec(code, names))
        program += block
    fixtures: list[str] = []
    for name, function in list(names.items()):
        if name == "welcome":
            example(lambda: asyncio.run(function("eve@example.org")), calls=True)
        elif name == "place_order":
            example(lambda: function(17), calls=True)
        elif name.startswith("test_"):
            if inspect.signature(function).parameters:
                fixtures.append(name)
            else:
                example(function, calls=False)
    if fixtures:
        with_pytest(program, fixtures)
    with tempfile.TemporaryDirectory() as folder:
        save(blocks, Path(folder))
        once(text, folder)
        work_off(text, folder)
    print(f"{page}: {len(blocks)} blocks of Python ran")


def with_pytest(program: str, tests: list[str]) -> None:
    """Run tests that want fixtures, in a process whose app has no client yet."""
    definitions = program.split("submitted = send_mail.submit", 1)[0]
    wanted = "\n\n".join(
        re.search(rf"^def {t}\(.*?(?=^\S|\Z)", program, re.S | re.M).group(0)  # type: ignore[union-attr]
        for t in tests
    )
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "test_docs.py").write_text(definitions + "\n\n" + wanted)
        command = [sys.executable, "-m", "pytest", "-q", "-p", "claimq.pytest_plugin", folder]
        subprocess.run(command, check=True)


def save(blocks: list[str], folder: Path) -> None:
    """Save the blocks that begin with a file's name."""
    for block in blocks:
        name = re.match(r"# (\w+\.py)\n", block)
        if name is not None:
            Path(folder, name.group(1)).write_text(block)


def once(text: str, folder: str) -> None:
    """Run handlers without claimq, as the page has it."""
    for command in re.findall(r"`(python3 -m claimq\.run [^`]* --task [^`]*)`", text):
        done = subprocess.run(command, shell=True, cwd=folder, capture_output=True, text=True)
        assert done.returncode == 0 and "ada" in done.stdout, done


def work_off(text: str, folder: str) -> None:
    """Have a worker do the mails that the examples submitted, started as the page has it."""
    command = re.search(r"(claimq work --serve [^`\n]*?-- python3 -m claimq\.run \w+:app)", text)
    assert command is not None, "the page starts no worker"
    with Client() as client:
        waiting = [t["id"] for t in client.tasks(status="pending", task_type="mail")]
        assert waiting, "the examples submitted no mail"
        worker = subprocess.Popen(shlex.split(command.group(1)), cwd=folder)
        kill_leader()
        for id in waiting:
            task = client.wait(id, timeout=60)
            assert task["status"] == "completed" and "@example.org" in str(task["result"]), task
        worker.send_signal(signal.SIGTERM)
        assert worker.wait(60) == 0


main()
