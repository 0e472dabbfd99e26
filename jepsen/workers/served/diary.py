"""A program for `claimq work --serve` in package workers: handlers of the Python client that keep
a diary of what they see and do, as jepsen/workers/worker does in Go.

DIARY is the beginning of the diaries' names, of which each process has one; STORE is the file
that the work writes to; LEASE is the length of a claim, in seconds.
"""

from __future__ import annotations

import asyncio
import ctypes
import json
import os
import random
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Generator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[3] / "clients/python/src"))

from claimq import App, Cancelled, Permanent, RetryAfter, Snooze, current, new_task
from claimq.run import main

LEASE = float(os.environ["LEASE"])
RETRY = 0.1
diary = os.open(
    f"{os.environ['DIARY']}.{os.getpid()}", os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_WRONLY, 0o644
)
app = App(concurrency=4)


def note(event: str, at: int, text: str = "") -> None:
    task = current()
    line = {"at": at, "to": time.monotonic_ns(), "e": event, "task": str(task.id), "tok": task.token}
    os.write(diary, json.dumps(line | {"attempt": task.attempt, "text": text}).encode() + b"\n")


def look(event: str) -> None:
    """See whether the handler is to stop, and write down what it saw."""
    at = time.monotonic_ns()
    if not current().cancelled.is_set():
        note(event, at)
        return
    why = current().reason
    note("ended", at, str(why))
    raise Cancelled(why or "shutdown")


def write(id: int, token: int, what: str) -> bool:
    """Write to the store; return False if it has heard of a later claim."""
    body = {"task": str(id), "token": token, "worker": os.environ["CLAIMQ_WORKER"], "what": what}
    try:
        urllib.request.urlopen(os.environ["STORE"], json.dumps(body).encode(), timeout=30).close()
    except urllib.error.HTTPError:
        return False
    return True


def work(
    rng: random.Random, fails: bool, then: list[str], seed: int
) -> Generator[tuple[str, float], None, str]:
    """Do the work of a claim. It yields for how long to sleep, or to block all that the
    interpreter has, and returns how the attempt ends."""
    task = current()
    look("begin")
    if not write(task.id, task.token, "mark"):
        return "refused"
    every = rng.uniform(0.002, 0.06)
    left = LEASE * (rng.uniform(0.1, 3) if rng.random() < 0.3 else rng.uniform(0.1, 0.6))
    end = time.monotonic() + left
    blocks_at = time.monotonic() + rng.random() * left if rng.random() < 0.15 else None
    while time.monotonic() < end:
        if blocks_at is not None and time.monotonic() >= blocks_at:
            blocks_at = None
            yield "block", rng.uniform(0.1, 1.5) * LEASE
        yield "sleep", every
        look("held")
    ends = rng.random()
    if ends < 0.12:
        return "fails"
    if ends < 0.2:
        return "snoozes"
    if not write(task.id, task.token, "effect"):
        return "refused"
    if fails:
        return "failed"
    task.then(
        *(
            new_task("plain", {"seed": seed + i + 1}, key=key, max_attempts=0)
            for i, key in enumerate(then)
        )
    )
    return "completes"


def end(how: str) -> int:
    """Write down how the attempt ends, and end it so."""
    note("return", time.monotonic_ns(), how)
    if how == "failed":
        raise Permanent("it is to fail")
    if how == "snoozes":
        raise Snooze(RETRY)
    if how in ("fails", "refused"):
        raise RetryAfter(RETRY, f"the attempt {how}")
    return current().token


def told(late: bool) -> None:
    """Write down that the handler stops. One that is late writes all the same, some time
    later: what it writes to must know better."""
    task = current()
    note("return", time.monotonic_ns(), "stops" if task.reason == "shutdown" else "lost")
    if late and task.reason == "lease_lost":
        timer = threading.Timer(2 * LEASE, write, (task.id, task.token, "effect"))
        timer.daemon = True
        timer.start()


def drawn(seed: int) -> random.Random:
    return random.Random(seed * 1_000_003 + current().token)


@app.task("plain", timeout=60)
def plain(seed: int, fails: bool = False, then: list[str] = []) -> Any:  # noqa: B006
    rng = drawn(seed)
    late = rng.random() < 0.25
    steps = work(rng, fails, then, seed)
    try:
        while True:
            try:
                what, seconds = next(steps)
            except StopIteration as ended:
                return end(ended.value)
            if what == "block":  # no other thread runs meanwhile
                ctypes.PyDLL(None).usleep(int(seconds * 1e6))
            else:
                time.sleep(seconds)
    except Cancelled:
        told(late)
        raise


@app.task("timed", timeout=60)
async def timed(seed: int, fails: bool = False, then: list[str] = []) -> Any:  # noqa: B006
    rng = drawn(seed)
    late = rng.random() < 0.25
    steps = work(rng, fails, then, seed)
    try:
        while True:
            try:
                what, seconds = next(steps)
            except StopIteration as ended:
                return end(ended.value)
            if what == "block":  # nothing else of the loop runs meanwhile
                time.sleep(seconds)
            else:
                await asyncio.sleep(seconds)
    except (Cancelled, asyncio.CancelledError):
        told(late)
        raise


if __name__ == "__main__":
    sys.exit(main(["__main__:app"]))
