"""Submits tasks by threads and by asyncio while nodes are killed, and counts what there is.

    load.py COUNT

Each task is submitted with a key. As long as there is an error that is not the task's fault
it is submitted again with the same key, as docs/producers.md has it. In the end each key has
exactly one task: nothing is lost, nothing is there twice.
"""

from __future__ import annotations

import asyncio
import collections
import sys
import threading
import time

from claimq import AsyncClient, Client, NotAvailable, OutcomeUnknown

THREADS = 8
again: collections.Counter[str] = collections.Counter()
ids: dict[str, int] = {}


def by_threads(client: Client, keys: list[str]) -> None:
    lock = threading.Lock()
    waiting = list(reversed(keys))

    def work() -> None:
        while True:
            with lock:
                if not waiting:
                    return
                key = waiting.pop()
            while True:
                try:
                    done = client.submit("load", {"key": key}, key=key, timeout=5)
                except (OutcomeUnknown, NotAvailable) as e:
                    again[type(e).__name__] += 1
                    continue
                assert not done.differs
                ids[key] = done.id
                break

    threads = [threading.Thread(target=work) for _ in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


async def by_asyncio(keys: list[str]) -> None:
    async with AsyncClient() as client:
        bound = asyncio.Semaphore(50)

        async def work(key: str) -> None:
            async with bound:
                while True:
                    try:
                        done = await client.submit("load", {"key": key}, key=key, timeout=5)
                    except (OutcomeUnknown, NotAvailable) as e:
                        again[type(e).__name__] += 1
                        continue
                    assert not done.differs
                    ids[key] = done.id
                    return

        await asyncio.gather(*map(work, keys))


def main() -> None:
    count = int(sys.argv[1])
    began = time.monotonic()
    keys = [f"k{i}" for i in range(count)]
    seen: list[int | None] = []
    with Client() as client:

        def watch() -> None:
            for event in client.follow(after="0.0", task_type="load", event=["submitted"]):
                seen.append(event["task_id"])
                if len(seen) >= count:
                    return

        watcher = threading.Thread(target=watch, daemon=True)
        watcher.start()
        by_threads(client, keys[: count // 2])
        asyncio.run(by_asyncio(keys[count // 2 :]))
        took = time.monotonic() - began
        have = {t["id"]: t.get("idempotency_key") for t in client.tasks(task_type="load")}
        assert len(have) == count, f"{len(have)} tasks of {count}"
        assert {key: id for id, key in have.items()} == ids, "an id is another key's"
        watcher.join(60)
        assert seen == sorted(ids.values()), f"the stream told of {len(seen)} of {count} tasks"
    print(f"{count} submits in {took:.1f} s, each there once; submitted again: {dict(again)}")


main()
