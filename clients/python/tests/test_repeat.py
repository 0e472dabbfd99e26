"""Calls are repeated by the same rules as in Go: clients/vectors.json has examples."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from claimq import _repeat

VECTORS: dict[str, Any] = json.loads((Path(__file__).parents[2] / "vectors.json").read_text())


@pytest.mark.parametrize("v", VECTORS["judge"], ids=str)
def test_judge(v: dict[str, Any]) -> None:
    assert _repeat.judge(v["status"], v["code"]).value == v["verdict"]


@pytest.mark.parametrize("v", VECTORS["decides"], ids=str)
def test_decides(v: dict[str, Any]) -> None:
    assert _repeat.decides(v["status"], v["code"]) == v["decides"]


@pytest.mark.parametrize("v", VECTORS["broken"], ids=str)
def test_broken(v: dict[str, Any]) -> None:
    assert _repeat.broken(v["sent"]).value == v["verdict"]


@pytest.mark.parametrize("v", VECTORS["next"], ids=lambda v: v["name"])
def test_next(v: dict[str, Any]) -> None:
    call = _repeat.Call(v["mutation"], v["repeatable"])
    assert call.next(_repeat.Verdict(v["verdict"])).value == v["action"]
    assert (call.doubted, call.tries) == (v["doubted"], 1)


def test_redirects() -> None:
    call = _repeat.Call(mutation=True, repeatable=True)
    for step in VECTORS["redirects"]:
        action = call.lost() if step["lost"] else call.next(_repeat.Verdict.REDIRECTED)
        assert action.value == step["action"]


@pytest.mark.parametrize("v", VECTORS["pause"], ids=str)
def test_pause(v: dict[str, Any]) -> None:
    call = _repeat.Call(mutation=True, repeatable=True, tries=v["tries"])
    pause = call.pause(v["asked_ms"] / 1000, lambda: v["random"])
    assert pause * 1000 == pytest.approx(v["pause_ms"])


@pytest.mark.parametrize("v", VECTORS["poll_wait"], ids=str)
def test_poll_max(v: dict[str, Any]) -> None:
    # A wait for the end of a task has no lease: it is as a claim with a long one.
    if v["lease_ms"] == 3_600_000:
        assert min(v["left_ms"] / 1000, _repeat.POLL_MAX) == v["wait_ms"] / 1000


@pytest.mark.parametrize("v", VECTORS["safe"], ids=lambda v: v["op"])
def test_safe(v: dict[str, Any]) -> None:
    op = v["op"]
    assert _repeat.safe(op, True) == v["marked"]
    assert _repeat.safe(op, False) == v["unmarked"]
    assert _repeat.batch_safe(op, True) == v["batch"]
