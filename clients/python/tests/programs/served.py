"""Handlers for claimq work --serve: what one does is its params."""

from __future__ import annotations

import asyncio
import os
import signal
from typing import Any

from claimq import App, Permanent, RetryAfter, Snooze, current, new_task

app = App(concurrency=8)
snoozed: set[int] = set()


@app.task("do", timeout=60)
def do(what: str) -> Any:
    task = current()
    if what == "fail" and task.attempt == 1:
        raise ValueError("bad luck")
    if what == "retry" and task.attempt == 1:
        raise RetryAfter(0.01, "busy")
    if what == "large":
        return b"\xff" * 2001
    if what == "permanent":
        raise Permanent("never")
    if what == "snooze" and task.id not in snoozed:
        snoozed.add(task.id)
        raise Snooze(0.01)
    if what == "die" and task.attempt == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    if what == "wait":
        task.progress({"waits": True})
        task.cancelled.wait(60)
        task.raise_if_cancelled()
    if what == "follow":
        task.then(new_task("do", {"what": "followed"}, key="followed"))
    return {"pid": os.getpid(), "attempt": task.attempt}


@app.task("ado", timeout=60)
async def ado(what: str) -> Any:
    current().progress({"waits": True})
    if what == "wait":
        await asyncio.sleep(60)
    return what


@app.task("count")
def count() -> int:
    """Write down that the claim was worked on."""
    with open(os.environ["LEDGER"], "a") as ledger:
        ledger.write(f"{current().id} {current().token}\n")
    return current().token
