"""A pytest plugin: fixtures with a claimq in memory.

    def test_welcome(claimq_client, claimq_time, run_worker):
        sign_up(claimq_client, "ada@example.org")
        assert [type(o) for o in run_worker(app)] == [Done]

It needs the program claimq: in PATH, or named by CLAIMQ_BIN. The server starts with the first
test that wants one, in some milliseconds, and is empty for each test.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from typing import Any

import pytest

from ._app import App
from ._client import Client
from ._task import milliseconds
from .testing import Outcome, work_off


class Server:
    """A claimq in memory, as `claimq testserver` runs it."""

    url: str
    """Its endpoint."""

    def __init__(self, url: str) -> None:
        """Take the endpoint."""
        self.url = url
        self._client = Client(url, api_key="")

    def call(self, path: str, body: object = None) -> dict[str, Any]:
        """Make one of the calls that only a test server has."""
        return self._client.request("POST", path, body or {})

    def close(self) -> None:
        """Close the connections to it."""
        self._client.close()


class Time:
    """The time of the test server, which stands still."""

    def __init__(self, server: Server) -> None:
        """Take the server whose time it is."""
        self._server = server

    def advance(self, length: float | timedelta) -> datetime:
        """Move the time on by seconds or a timedelta, do what comes due on the way, each at
        its time (delays, backoffs, schedules, leases), and return the time."""
        answer = self._server.call("/test/advance", {"ms": milliseconds(length)})
        return datetime.fromisoformat(answer["now"])


@pytest.fixture(scope="session")
def _claimq_process() -> Iterator[Server]:
    binary = os.environ.get("CLAIMQ_BIN") or shutil.which("claimq")
    if binary is None:
        pytest.fail(
            "the program claimq is not in PATH: install it, or name it in CLAIMQ_BIN", pytrace=False
        )
    process = subprocess.Popen(
        [binary, "testserver"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdin is not None and process.stdout is not None
    try:
        url = process.stdout.readline().strip()
        if not url:
            pytest.fail(f"{binary} testserver ended with {process.wait()}", pytrace=False)
        server = Server(url)
        yield server
        server.close()
    finally:
        process.stdin.close()
        process.stdout.close()
        process.wait()


@pytest.fixture
def claimq_server(
    _claimq_process: Server, monkeypatch: pytest.MonkeyPatch
) -> Server:
    """A claimq in memory, empty. CLAIMQ_ENDPOINTS names it while the test runs."""
    _claimq_process.call("/test/reset")
    monkeypatch.setenv("CLAIMQ_ENDPOINTS", _claimq_process.url)
    for name in ("CLAIMQ_API_KEY", "CLAIMQ_API_KEY_FILE"):
        monkeypatch.delenv(name, raising=False)
    return _claimq_process


@pytest.fixture
def claimq_client(claimq_server: Server) -> Iterator[Client]:
    """A client of the server."""
    with Client(claimq_server.url) as client:
        yield client


@pytest.fixture
def claimq_time(claimq_server: Server) -> Time:
    """The server's time, which the test moves."""
    return Time(claimq_server)


@pytest.fixture
def run_worker(claimq_client: Client) -> Callable[[App], list[Outcome]]:
    """Work off what is there: run_worker(app) runs the handlers of an app, in this process,
    until nothing is left that can be claimed now, and returns how each attempt ended. Tasks
    that handlers submit go to the server, too."""

    def run(app: App) -> list[Outcome]:
        return work_off(app, claimq_client)

    return run
