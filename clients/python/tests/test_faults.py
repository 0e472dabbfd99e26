"""Both clients against clients/faults: redirects in a ring, cut connections, proxies."""

from __future__ import annotations

import asyncio
import json
import os
import ssl
import subprocess
import time
from typing import Any

import pytest

from claimq import (
    AsyncClient,
    ClaimqError,
    Client,
    Invalid,
    NotAuthorized,
    NotAvailable,
    NotFound,
    OutcomeUnknown,
    _aio,
)
from claimq._core import Failure, Open, Reply

FAULTS = os.environ["CLAIMQ_FAULTS"]
SCRIPTS = subprocess.run([FAULTS], capture_output=True, text=True, check=True).stdout.splitlines()
FAMILIES: dict[str, type[ClaimqError]] = {
    "invalid": Invalid,
    "not_authorized": NotAuthorized,
    "not_available": NotAvailable,
    "not_found": NotFound,
    "outcome_unknown": OutcomeUnknown,
}
# How long a script is played again whose call was out of time.
PATIENCE = 60.0


@pytest.mark.parametrize("kind", ["threads", "asyncio"])
@pytest.mark.parametrize("name", SCRIPTS)
def test_script(name: str, kind: str) -> None:
    until = time.monotonic() + PATIENCE
    plan, error, wrong = play(name, kind)
    # On a busy machine the time of a call may be over before its last request is answered.
    while (
        isinstance(error, OutcomeUnknown)
        and plan["outcome"] != "outcome_unknown"
        and time.monotonic() < until
    ):
        plan, error, wrong = play(name, kind)
    if plan["outcome"] == "done":
        assert error is None
    else:
        assert type(error) is FAMILIES[plan["outcome"]], error
        assert error.code == plan["code"]
        assert error.request_id
    assert wrong == ""


def play(name: str, kind: str) -> tuple[dict[str, Any], ClaimqError | None, str]:
    """Return the script's plan, the error of its last call, and how the requests differed."""
    server = subprocess.Popen(
        [FAULTS, name],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert server.stdout is not None
    plan: dict[str, Any] = json.loads(server.stdout.readline())
    error: ClaimqError | None = None
    try:
        if kind == "threads":
            with Client(plan["endpoints"], api_key="k") as client:
                for _ in range(plan["calls"]):
                    call(client, plan)
        else:
            asyncio.run(acall(plan))
    except ClaimqError as e:
        error = e
    _, wrong = server.communicate()
    if server.returncode != 0 and not wrong:
        wrong = f"exit code {server.returncode}"
    return plan, error, wrong


@pytest.mark.parametrize("begin", ["send", "open"])
def test_an_answer_without_an_end_is_not_kept(
    begin: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_aio, "ANSWER_MAX", 100_000)
    read = 0

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal read
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 500 Internal Server Error\r\n\r\n")
        while not writer.is_closing():
            writer.write(b"x" * 10_000)
            read += 10_000
            try:
                await writer.drain()
            except ConnectionError:
                return

    async def main() -> object:
        server = await asyncio.start_server(answer, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        transport = _aio.Transport(ssl.create_default_context)
        command = Open(f"http://127.0.0.1:{port}", "GET", "/", {}, None, 5.0, 5.0)
        try:
            if begin == "send":
                return await transport.send(command)
            return (await transport.open(command))[0]
        finally:
            transport.close()
            server.close()

    outcome = asyncio.run(main())
    if begin == "send":
        assert isinstance(outcome, Failure) and "too large" in str(outcome.error)
    else:
        assert isinstance(outcome, Reply) and outcome.body == b""
    assert read < 20_000_000  # it hung up, and not because its time was over


def call(client: Client, plan: dict[str, Any]) -> None:
    timeout = plan["timeout_ms"] / 1000
    if plan["call"] == "submit":
        assert client.submit("mail", {"to": "ada"}, timeout=timeout).id == 1
    elif plan["call"] == "get":
        assert client.get(1, timeout=timeout)["id"] == 1
    elif plan["call"] == "retry":
        assert client.retry(1, timeout=timeout)["id"] == 1
    elif plan["call"] == "delete":
        client.delete(1, timeout=timeout)
    elif plan["call"] == "claim":
        answer = client.batch([{"op": "claim", "worker_id": "w"}], timeout=timeout)
        assert answer["results"] == [{"success": True, "tasks": []}]
    else:
        raise AssertionError(plan)


async def acall(plan: dict[str, Any]) -> None:
    timeout = plan["timeout_ms"] / 1000
    async with AsyncClient(plan["endpoints"], api_key="k") as client:
        for _ in range(plan["calls"]):
            if plan["call"] == "submit":
                assert (await client.submit("mail", {"to": "ada"}, timeout=timeout)).id == 1
            elif plan["call"] == "get":
                assert (await client.get(1, timeout=timeout))["id"] == 1
            elif plan["call"] == "retry":
                assert (await client.retry(1, timeout=timeout))["id"] == 1
            elif plan["call"] == "delete":
                await client.delete(1, timeout=timeout)
            elif plan["call"] == "claim":
                answer = await client.batch([{"op": "claim", "worker_id": "w"}], timeout=timeout)
                assert answer["results"] == [{"success": True, "tasks": []}]
            else:
                raise AssertionError(plan)
