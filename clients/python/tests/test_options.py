"""What the server refuses of a task is refused before it is sent, for the same field:
clients/options.json has examples, made by the server's decoder."""

from __future__ import annotations

import json
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

from claimq import App, Backoff, Client, Invalid, _options, new_step, new_task

VECTORS: list[dict[str, Any]] = json.loads(
    (Path(__file__).parents[2] / "options.json").read_text()
)


@pytest.mark.parametrize("v", VECTORS, ids=lambda v: json.dumps(v["task"])[:80])
def test_vector(v: dict[str, Any]) -> None:
    try:
        _options.check(v["task"])
        field = ""
    except Invalid as e:
        field = e.field
        assert (e.code, str(e).startswith(field)) == ("invalid_task", True)
    assert field == v["field"]


LATER = datetime(2026, 1, 1, tzinfo=timezone.utc)


@pytest.mark.parametrize(
    ("options", "field", "why"),
    [
        ({"max_attempts": -1}, "max_attempts", "is -1: it must be an integer from 0 to 2147483647"),
        ({"max_attempts": 2.5}, "max_attempts", "is 2.5: it must be an integer"),
        ({"lease": 0.05}, "lease_ms", "is 50: it must be an integer from 100 to 86400000"),
        ({"delay": -1}, "delay_ms", "is -1000: "),
        ({"delay": float("nan")}, "delay_ms", "is nan s: it must be a number of seconds"),
        ({"retention": float("inf")}, "retention_ms", "is inf s"),
        ({"run_at": "2026-01-01T00:00:00Z"}, "run_at", "it must be a datetime"),
        ({"expires_at": 1767225600}, "expires_at", "it must be a datetime"),
        ({"backoff": {"initial_ms": 1}}, "backoff", "it must be a Backoff"),
        ({"labels": ["a"]}, "labels", "it must be a mapping"),
        ({"attributes": 5}, "attributes", "it must be a mapping"),
        ({"steps": 5}, "steps", "it must be a list of steps"),
        ({"payload": "text"}, "payload", "it must be bytes"),
        ({"delay": "soon"}, "delay_ms", "it must be a number of seconds"),
        ({"lease": [30]}, "lease_ms", "it must be a number of seconds"),
        ({"delay": 1, "run_at": LATER}, "delay_ms", "and run_at are both given"),
        ({"run_at": LATER - timedelta(days=30_000)}, "run_at", "it must be a time of the years 1970"),
        ({"expires_at": LATER, "run_at": LATER}, "expires_at", "is not after run_at"),
        ({"backoff": Backoff(2, max=1)}, "backoff.max_ms", "is 1000: it must not be below"),
        ({"backoff": Backoff(float("nan"))}, "backoff.initial_ms", "is nan s"),
        ({"backoff": Backoff(1, factor=0.5)}, "backoff.factor", "is 0.5: it must be a number from 1"),
        ({"unique": "active"}, "unique", "is given without a key"),
        ({"key": ""}, "idempotency_key", "is '': it must be a string of 1 to 256 bytes"),
        ({"labels": {"a:b": "c"}}, "labels", "have 'a:b'"),
        ({"attributes": {"a": [float("nan")]}}, "attributes.a[0]", "is nan"),
        ({"finalize": "claim"}, "finalize", "is only for a task with steps"),
        ({"payload": b""}, "payload", "is empty"),
        ({"params": {"a": [{"b": float("nan")}]}}, "params.a[0].b", "is nan"),
        ({"params": {"a": {1, 2}}}, "params.a", "is of the type set"),
        ({"params": {"a": b"x"}}, "params.a", "is of the type bytes"),
        ({"params": {"a": {1: 2}}}, "params.a", "has the key 1 (int)"),
        ({"params": {"a": LATER}}, "params.a", "is of the type datetime"),
    ],
    ids=str,
)
def test_nothing_is_sent(options: dict[str, Any], field: str, why: str) -> None:
    with Client("http://127.0.0.1:1", timeout=1) as client, pytest.raises(Invalid) as e:
        client.submit("mail", **options)
    assert e.value.field == field
    assert str(e.value).startswith(field + " ") and why in str(e.value)


def test_types_and_handlers() -> None:
    with pytest.raises(Invalid, match="task_type is 'a b': it must be 1 to 128 of"):
        new_task("a b")
    with pytest.raises(ValueError, match="step 'b c': its name must be"):
        new_step("b c", new_task("t"))
    with pytest.raises(ValueError, match="step '': its name must be"):
        new_step("a", new_task("t"), depends_on=[""])
    with pytest.raises(ValueError, match="step a: a step has no finalize"):
        new_step("a", new_task("t") | {"finalize": "claim"})
    with pytest.raises(ValueError, match=r"task type '\.\.': it must be"):
        App().task("..")
    for timeout in (1e9, float("nan"), 0):
        with pytest.raises(ValueError, match="timeout is .*: it must be more than 0 seconds"):
            App().task("t", timeout=timeout)
    with pytest.raises(ValueError, match="concurrency is 1.5: it must be an integer"):
        App(concurrency=1.5)  # type: ignore[arg-type]


def test_an_offset_with_seconds() -> None:
    zone = timezone(timedelta(minutes=19, seconds=32))  # Amsterdam, until 1937
    task = new_task("t", run_at=datetime(2026, 1, 1, tzinfo=zone))
    assert task.get("run_at") == "2025-12-31T23:40:28+00:00"
