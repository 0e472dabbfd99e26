"""Runs the Python of pages, one block after the other, in one program against real nodes.

    docs.py PAGE...

Functions named test_ run as tests, those with fixtures by pytest. Django and FastAPI are not
there: stand-ins have what the examples use of them.
"""

from __future__ import annotations

import asyncio
import inspect
import re
import subprocess
import sys
import tempfile
import types
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any


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
    for page in sys.argv[1:]:
        names: dict[str, Any] = {"__name__": "docs"}
        program = ""
        text = Path(page).read_text()
        blocks = re.findall(r"^```python\n(.*?)^```$", text, re.S | re.M)
        assert blocks, f"{page} has no Python"
        for block in blocks:
            exec(compile(block, page, "exec"), names)
            program += block
        fixtures: list[str] = []
        for name, function in list(names.items()):
            if name == "welcome":
                assert asyncio.run(function("eve@example.org"))["task"] > 0
            elif name.startswith("test_"):
                if inspect.signature(function).parameters:
                    fixtures.append(name)
                else:
                    function()
        if fixtures:
            with_pytest(program, fixtures)
        print(f"{page}: {len(blocks)} blocks of Python ran")


def with_pytest(program: str, tests: list[str]) -> None:
    """Run tests that want fixtures, in a process whose app has no client yet."""
    definitions = program.split("submitted = send_mail.submit", 1)[0]
    wanted = "\n\n".join(
        re.search(rf"^def {t}\(.*?(?=^\S|\Z)", program, re.S | re.M).group(0)  # type: ignore[union-attr]
        for t in tests
    )
    with tempfile.TemporaryDirectory() as dir:
        Path(dir, "test_docs.py").write_text(definitions + "\n\n" + wanted)
        command = [sys.executable, "-m", "pytest", "-q", "-p", "claimq.pytest_plugin", dir]
        subprocess.run(command, check=True)


main()
