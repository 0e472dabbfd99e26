"""Compares claimq work --serve with Celery and BullMQ; README.md says how to run it.

Each row gets COUNT tasks before its workers begin, and tells how many were done a second
between the tenth and the ninetieth percent. A lone task is submitted when the last one is
done; its time is from the submit until its submitter knows that it is done.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import platform
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path[:0] = [str(ROOT / "clients/python/src"), str(HERE)]

from claimq import Client, new_task  # noqa: E402

PATIENCE = 120  # seconds for anything measured
BUILD_PATIENCE = 600  # seconds for each step that builds what is measured

environ = os.environ  # of all that is started
environ.update(PYTHONPATH=f"{ROOT}/clients/python/src:{HERE}", PYTHONDONTWRITEBYTECODE="1")
sys.dont_write_bytecode = True


@contextlib.contextmanager
def running(command: list[str], log: Path, processes: int = 1) -> Iterator[None]:
    """Run a number of processes of a command until the block ends."""
    with log.open("ab") as out:
        all = [
            subprocess.Popen(command, stdout=out, stderr=out, env=environ, cwd=HERE)
            for _ in range(processes)
        ]
    try:
        yield
        for process in all:
            if process.poll() is not None:
                raise RuntimeError(f"{command} has ended: {log.read_text()[-2000:]}")
    finally:
        for process in all:
            process.send_signal(signal.SIGTERM)
        for process in all:
            try:
                process.wait(60)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def until(what: str, ok: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE
    while not ok():
        if time.monotonic() > end:
            raise TimeoutError(what)
        time.sleep(0.02)


def rate(count: int, done: Callable[[], int]) -> float:
    """Return tasks a second, from the tenth to the ninetieth percent."""
    seen: list[tuple[float, int]] = []

    def look() -> bool:
        n = done()
        seen.append((time.monotonic(), n))
        return n >= 0.9 * count

    until("the tasks are done", look)
    begun, before = next(s for s in seen if s[1] >= 0.1 * count)
    ended, after = seen[-1]
    if after - before < 0.4 * count:
        raise RuntimeError(f"too fast to be seen: more than {count} tasks are needed")
    return (after - before) / (ended - begun)


def lone(count: int, once: Callable[[], object]) -> float:
    """Return the median time of a task, in milliseconds."""
    took = []
    for _ in range(count):
        begun = time.perf_counter()
        once()
        took.append((time.perf_counter() - begun) * 1000)
    return statistics.median(took)


def free_port() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return int(s.getsockname()[1])


class Claimq:
    """Three nodes, each with a disk's sync for every entry."""

    def __init__(self, binary: str, dir: Path) -> None:
        self.binary, self.dir = binary, dir
        port = 17400
        self.nodes = running(
            [binary, "dev", "--data-dir", str(dir / "nodes"), "--port", str(port)], dir / "nodes.log"
        )
        environ["CLAIMQ_ENDPOINTS"] = ",".join(
            f"http://127.0.0.1:{port + 10 * i}" for i in range(3)
        )

    def __enter__(self) -> Claimq:
        self.nodes.__enter__()
        self.client = Client(environ["CLAIMQ_ENDPOINTS"].split(","), timeout=60)
        self.client.types()  # waits for a leader
        return self

    def __exit__(self, *args: object) -> None:
        self.client.close()
        self.nodes.__exit__(*args)

    def measure(self, worker: list[str], count: int, lones: int) -> tuple[float, float]:
        already = self.done()
        for at in range(0, count, 1000):
            self.client.submit_many(
                [new_task("bench", {}, retention=3600) for _ in range(min(1000, count - at))]
            )
        with running(worker, self.dir / "worker.log"):
            speed = rate(count, lambda: self.done() - already)
            until("all are done", lambda: self.done() - already == count)

            def once() -> None:
                task = self.client.submit("bench", {}).id
                assert self.client.wait(task, timeout=60)["status"] == "completed"

            lone(20, once)
            return speed, lone(lones, once)

    def done(self) -> int:
        answer = self.client.request("GET", "/api/types/bench")
        return int(answer["type"]["counts"].get("completed", 0))


@contextlib.contextmanager
def redis(dir: Path) -> Iterator[object]:
    """Run a Redis that syncs its file for every write."""
    import redis as client

    port = environ["REDIS_PORT"]
    options = ["--port", port, "--dir", str(dir), "--appendonly", "yes", "--appendfsync", "always"]
    with running(["redis-server", *options, "--save", "", "--bind", "127.0.0.1"], dir / "redis.log"):
        connection = client.Redis(port=int(port))

        def answers() -> bool:
            try:
                return bool(connection.ping())
            except client.ConnectionError:
                return False

        until("Redis answers", answers)
        yield connection


def celery(dir: Path, connection: object, count: int, lones: int) -> tuple[float, float]:
    from celery_worker import bench
    from celery_worker import lone as alone

    for _ in range(count):
        bench.delay()
    command = [sys.executable, "-m", "celery", "-A", "celery_worker", "worker", "--queues", "bench"]
    flags = ["--concurrency", "2", "--prefetch-multiplier", "64", "--without-gossip", "--without-mingle"]
    with running([*command, *flags, "--loglevel", "WARNING"], dir / "celery.log"):
        left = lambda: connection.llen("bench") + connection.hlen("unacked")  # type: ignore[attr-defined]  # noqa: E731
        speed = rate(count, lambda: count - int(left()))
        until("all are done", lambda: left() == 0)
        once = lambda: alone.delay().get(timeout=60, interval=0.001)  # noqa: E731
        lone(20, once)
        return speed, lone(lones, once)


def bullmq(dir: Path, connection: object, count: int, lones: int) -> tuple[float, float]:
    node = ["node", environ["BULLMQ"]]
    subprocess.run([*node, "fill", str(count)], check=True, env=environ, timeout=PATIENCE)
    with running(node, dir / "bullmq.log", processes=2):
        left = lambda: connection.llen("bull:bench:wait") + connection.llen("bull:bench:active")  # type: ignore[attr-defined]  # noqa: E731
        speed = rate(count, lambda: count - int(left()))
        until("all are done", lambda: left() == 0)
        command = [*node, "lone", str(lones)]
        took = subprocess.run(command, check=True, env=environ, stdout=subprocess.PIPE, timeout=PATIENCE)
        return speed, statistics.median(json.loads(took.stdout))


def prepare(dir: Path) -> dict[str, str]:
    """Build what is measured, and return the versions."""

    def build(*command: str, cwd: Path) -> None:
        subprocess.run(command, check=True, cwd=cwd, timeout=BUILD_PATIENCE)

    npm = ["--ignore-scripts", "--no-audit", "--no-fund", "--prefer-offline", "--silent"]
    node = dir / "bullmq"
    node.mkdir()
    for name in ("package.json", "package-lock.json", "bullmq_worker.mjs"):
        shutil.copy(HERE / name, node)
    build("npm", "ci", *npm, cwd=node)
    environ["BULLMQ"] = str(node / "bullmq_worker.mjs")
    client = dir / "typescript"
    shutil.copytree(
        ROOT / "clients/typescript", client, ignore=shutil.ignore_patterns("node_modules", "dist", "build")
    )
    build("npm", "ci", *npm, cwd=client)
    build("npm", "run", "--silent", "build", cwd=client)
    environ["CLIENT"] = str(client)
    build("go", "build", "-o", str(dir / "goworker"), "./bench/workers/goworker", cwd=ROOT)

    def said(*command: str) -> str:
        ran = subprocess.run(command, check=True, capture_output=True, text=True, timeout=PATIENCE)
        return ran.stdout.strip()

    return {
        "Python": platform.python_version(),
        "Node": said("node", "--version").removeprefix("v"),
        "Redis": said("redis-server", "--version").split("v=")[1].split()[0],
        "Celery": said(sys.executable, "-m", "celery", "--version").split()[0],
        "BullMQ": json.loads((node / "node_modules/bullmq/package.json").read_text())["version"],
    }


def rows(binary: str, dir: Path) -> dict[str, Callable[[Path, int, int], tuple[float, float]]]:
    """Return the function that measures each row, in its folder."""

    def claimq(worker: list[str]) -> Callable[[Path, int, int], tuple[float, float]]:
        def measure(here: Path, count: int, lones: int) -> tuple[float, float]:
            with Claimq(binary, here) as q:
                return q.measure(worker, count, lones)

        return measure

    def on_redis(
        of: Callable[[Path, object, int, int], tuple[float, float]],
    ) -> Callable[[Path, int, int], tuple[float, float]]:
        def measure(here: Path, count: int, lones: int) -> tuple[float, float]:
            with redis(here) as connection:
                return of(here, connection, count, lones)

        return measure

    served = [binary, "work", "--serve", "--processes", "2", "--"]
    return {
        "go": claimq([str(dir / "goworker")]),
        "python": claimq([*served, sys.executable, "-m", "claimq.run", "claimq_worker:app"]),
        "node": claimq([*served, "node", str(HERE / "claimq_worker.mjs")]),
        "celery": on_redis(celery),
        "bullmq": on_redis(bullmq),
    }


NAMES = {
    "go": "claimq, Go Worker",
    "python": "claimq work --serve, Python",
    "node": "claimq work --serve, Node",
    "celery": "Celery",
    "bullmq": "BullMQ",
}


def show(figures: dict[str, list[tuple[float, float]]]) -> None:
    """Print the medians, and their ratios."""
    print("\n| worker, two processes | tasks/s | a lone task's p50, ms |\n| --- | --- | --- |")
    medians = {row: [statistics.median(column) for column in zip(*of)] for row, of in figures.items()}
    for row, (speed, p50) in medians.items():
        print(f"| {NAMES[row]} | {speed:,.0f} | {p50:.2f} |")
    print()
    for ours, theirs in (("python", "celery"), ("node", "bullmq")):
        if ours in medians and theirs in medians:
            times = medians[ours][0] / medians[theirs][0]
            print(f"{NAMES[ours]}: {times:.1f} times {NAMES[theirs]}.")
        if ours in medians and "go" in medians:
            times = medians[ours][1] / medians["go"][1]
            print(f"A lone task takes {NAMES[ours]} {times:.2f} times a Go Worker's time.")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--binary", default=str(ROOT / "bin/claimq"), help="claimq (default: bin/claimq)")
    parser.add_argument("--rows", default=",".join(NAMES), help="which (default: %(default)s)")
    parser.add_argument("--tasks", type=int, default=20_000, help="of each row (default: 20000)")
    parser.add_argument("--lone", type=int, default=300, help="lone tasks of each row (default: 300)")
    parser.add_argument("--rounds", type=int, default=3, help="of which the medians are shown (default: 3)")
    given = parser.parse_args()
    chosen = given.rows.split(",")
    if not set(chosen) <= set(NAMES):
        parser.error(f"--rows is {given.rows}: it must be some of {','.join(NAMES)}")
    environ["REDIS_PORT"] = str(free_port())
    environ["REDIS"] = f"redis://127.0.0.1:{environ['REDIS_PORT']}/0"
    figures: dict[str, list[tuple[float, float]]] = {row: [] for row in chosen}
    with tempfile.TemporaryDirectory(prefix="claimq-bench-") as folder:
        dir = Path(folder)
        versions = prepare(dir)
        measures = rows(given.binary, dir)
        for round in range(given.rounds):
            for row in chosen:
                here = dir / f"{round}-{row}"
                here.mkdir()
                of = measures[row](here, given.tasks, given.lone)
                shutil.rmtree(here)
                figures[row].append(of)
                print(f"round {round + 1}: {NAMES[row]}: {of[0]:,.0f} tasks/s, {of[1]:.2f} ms", file=sys.stderr)
    print(", ".join(f"{name} {version}" for name, version in versions.items()))
    show(figures)


if __name__ == "__main__":
    main()
