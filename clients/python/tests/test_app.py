"""Typed handlers, the helpers for tests, and the pytest plugin."""

from __future__ import annotations

import asyncio
import inspect
import runpy
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from claimq import (
    App,
    AsyncClient,
    Client,
    Conflict,
    NotFound,
    Options,
    Permanent,
    RetryAfter,
    Snooze,
    SubmitManyError,
    current,
    new_step,
    new_task,
    types,
)
from claimq.pytest_plugin import Server, Time
from claimq.testing import Done, Failed, Outcome, Snoozed, recorder, run, run_async

app = App()
RunWorker = Callable[[App], list[Outcome]]


@app.task("mail")
def send_mail(to: str, subject: str = "") -> dict[str, str]:
    """Send a mail."""
    current().progress({"sent": 0})
    return {"to": to}


@app.task("report")
async def report(month: int) -> int:
    await send_mail.submit_async(f"{month}@example.org")
    current().then(send_mail.new("after@example.org"))
    return month


def test_plain_call() -> None:
    with pytest.raises(RuntimeError, match="outside of a handler"):
        send_mail("ada@example.org")


def test_run() -> None:
    assert run(send_mail, "ada") == Done({"to": "ada"})
    with recorder(app) as r:
        assert run(report, month=11) == Done(11, (send_mail.new("after@example.org"),))
    r.assert_submitted(send_mail, to="11@example.org")
    r.assert_not_submitted(report)
    with pytest.raises(AssertionError, match="was submitted 0 times"):
        r.assert_submitted(send_mail, to="12@example.org")
    with pytest.raises(TypeError, match="missing a required argument"):
        send_mail.new()  # type: ignore[call-arg]


def test_run_async() -> None:
    async def main() -> None:
        with recorder(app):
            assert isinstance(await run_async(report, 1), Done)

    asyncio.run(main())


def test_options_are_those_of_new_task() -> None:
    whole = set(inspect.signature(new_task).parameters)
    named = {"idempotency_key": "key", "unique_ms": "unique_for"}
    fields = types.NewTask.__annotations__
    assert whole == {named.get(name, name.removesuffix("_ms")) for name in fields}
    expected = whole - {"task_type", "params", "payload", "steps", "finalize", "on_step_failure"}
    assert set(Options.__annotations__) == expected
    assert set(inspect.signature(send_mail.options).parameters) == expected
    assert set(inspect.signature(Client.submit).parameters) == whole | {"self", "timeout"}


def test_options_are_of_one_submit() -> None:
    task = send_mail.options(key="k", delay=60).options(priority=3).new("ada", subject="s")
    assert task == {
        "task_type": "mail",
        "params": {"to": "ada", "subject": "s"},
        "idempotency_key": "k",
        "delay_ms": 60_000,
        "priority": 3,
    }
    assert send_mail.new("ada") == {"task_type": "mail", "params": {"to": "ada"}}


def test_decode_and_encode() -> None:
    own = App()

    def encode(arguments: Any) -> Any:
        return {"v": list(arguments.values())}

    def decode(params: bytes) -> Any:
        import json

        a, b = json.loads(params)["v"]
        return {"a": a, "b": b}

    @own.task("t", encode=encode, decode=decode)
    def t(a: int, b: int) -> int:
        return a * b

    assert t.new(2, 3).get("params") == {"v": [2, 3]}
    assert run(t, 2, 3) == Done(6)


def test_bad_handlers() -> None:
    own = App()
    own.task("t")(lambda: None)
    with pytest.raises(ValueError, match="has a handler already"):
        own.task("t")(lambda: None)
    with pytest.raises(TypeError, match="no name in params"):
        own.task("u")(lambda *a: None)
    with pytest.raises(ValueError, match="concurrency is 0"):
        own.task("u", concurrency=0)
    with pytest.raises(ValueError, match="timeout is -1"):
        own.task("u", timeout=-1)
    with pytest.raises(ValueError, match="concurrency is 1001"):
        App(concurrency=1001)


def test_client_is_made_from_the_async_one() -> None:
    script = Path(__file__).parents[1] / "make_client.py"
    made = runpy.run_path(str(script))
    assert made["TARGET"].read_text() == made["make"](), f"run {script}"


def test_worker_and_time(
    claimq_client: Client, claimq_time: Time, run_worker: RunWorker
) -> None:
    own = App(client=claimq_client)
    tries: list[int] = []

    @own.task("t")
    def t(what: str) -> str:
        tries.append(current().attempt)
        if len(tries) == 1:
            raise ValueError("once")
        if len(tries) == 2:
            raise RetryAfter(30, "busy")
        if len(tries) == 3:
            raise Snooze(10)
        current().progress("half")
        current().then(last.new())
        return what

    @own.task("last")
    def last() -> None:
        raise Permanent("for good")

    id = t.submit(what="x").id
    (failed,) = run_worker(own)
    assert isinstance(failed, Failed) and failed.error.startswith("ValueError: once\n")
    assert run_worker(own) == []  # it waits for its backoff
    claimq_time.advance(60)
    assert isinstance(run_worker(own)[0], Failed)
    claimq_time.advance(29)
    assert run_worker(own) == []
    claimq_time.advance(1)
    assert run_worker(own) == [Snoozed(10)]
    claimq_time.advance(10)
    done, gone = run_worker(own)
    assert isinstance(done, Done) and done.result == "x"
    assert isinstance(gone, Failed) and gone.permanent
    assert tries == [1, 2, 3, 3]  # one that is given back is not counted
    task = claimq_client.wait(id, timeout=5)
    assert (task["status"], task["result"], task["progress"]) == ("completed", "x", "half")


def test_wait(claimq_client: Client, run_worker: RunWorker) -> None:
    own = App(client=claimq_client)

    @own.task("slow")
    def slow() -> str:
        return "done"

    id = slow.submit().id
    with pytest.raises(TimeoutError, match="it is pending"):
        claimq_client.wait(id, timeout=0.1)
    with ThreadPoolExecutor(1) as threads:
        waiting = threads.submit(claimq_client.wait, id, timeout=60)
        with pytest.raises(TimeoutError):
            waiting.result(0.1)
        assert run_worker(own) == [Done("done")]
        assert waiting.result(60)["status"] == "completed"


def test_differs(claimq_client: Client) -> None:
    first = claimq_client.submit("t", 1, key="k")
    assert (first.created, first.differs) == (True, False)
    same, other = (claimq_client.submit("t", params, key="k") for params in (1, 2))
    assert (same.id, same.created, same.differs) == (first.id, False, False)
    assert (other.id, other.created, other.differs) == (first.id, False, True)
    [many] = claimq_client.submit_many([new_task("t", 2, key="k")])
    assert (many.id, many.created, many.differs) == (first.id, False, True)


def test_signal(claimq_client: Client, run_worker: RunWorker) -> None:
    own = App(client=claimq_client)

    @own.task("approve")
    def approve(n: int) -> Any:
        return current().signal

    id = approve.options(wait_for_signal=60).submit(n=1).id
    assert claimq_client.get(id).get("wait_for_signal_ms") == 60_000
    assert run_worker(own) == []
    assert not claimq_client.signal(id, {"ok": True}).differs
    again = claimq_client.signal(id, {"ok": False})
    assert (again.differs, again.task.get("signal")) == (True, {"ok": True})
    assert run_worker(own) == [Done({"ok": True})]
    with pytest.raises(Conflict):
        claimq_client.signal(claimq_client.submit("t").id)


def test_add_steps(claimq_client: Client, run_worker: RunWorker) -> None:
    own = App(client=claimq_client)
    tries: list[int] = []

    @own.task("plan")
    def plan(of: str) -> str:
        tries.append(current().attempt)
        part = new_step("part", new_task("part", {"n": 1}))
        current().add_steps(part, new_step("sum", new_task("part", {"n": 2}), depends_on=["part"]))
        if len(tries) == 1:
            raise Snooze(0)
        return of

    @own.task("part")
    def part(n: int) -> int:
        return n

    step = new_step("plan", plan.new("book"))
    parent = claimq_client.submit("scan", steps=[step])
    outcomes = run_worker(own)
    assert [o.result for o in outcomes if isinstance(o, Done)] == ["book", 1, 2]
    task = claimq_client.wait(parent.id, timeout=5)
    assert task["result"] == {"plan": "book", "part": 1, "sum": 2}
    alone = run(plan, "alone")
    assert isinstance(alone, Failed) and "is no step" in alone.error


def test_unique_replace(claimq_client: Client) -> None:
    first = claimq_client.submit("t", 1, key="k", unique="replace", delay=60)
    second = claimq_client.submit("t", 2, key="k", unique="replace")
    assert (first.replaced, second.id, second.replaced) == (False, first.id, True)
    assert (second.created, second.differs) == (False, False)
    [third] = claimq_client.submit_many([new_task("t", 3, key="k", unique="replace")])
    assert third.replaced
    task = claimq_client.get(first.id)
    assert (task["params"], task["status"]) == (3, "pending")
    other = claimq_client.submit("u", 4, key="k", unique="replace")
    assert (other.id, other.replaced, other.differs) == (first.id, False, True)


def test_each_test_has_an_empty_server(claimq_client: Client, claimq_server: Server) -> None:
    with pytest.raises(NotFound):
        claimq_client.get(1)
    assert claimq_client.submit("t").id == 1


def test_proxies_of_the_environment_are_not_asked(
    claimq_server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.delenv("no_proxy", raising=False)

    async def submit() -> int:
        async with AsyncClient(timeout=5) as client:
            return (await client.submit("t")).id

    with Client(timeout=5) as client:
        assert client.submit("t").id == 1
    assert asyncio.run(submit()) == 2


def test_steps(claimq_client: Client, run_worker: RunWorker) -> None:
    own = App(client=claimq_client)

    @own.task("fetch")
    def fetch(n: int) -> int:
        return n

    @own.task("bytes")
    def bytes_() -> bytes:
        return b"\xff\x00"

    @own.task("sum")
    def total() -> int:
        *numbers, last = current().dependencies.values()
        return sum(numbers) + len(last)

    steps = [
        new_step("a", fetch.new(1)),
        new_step("b", fetch.new(2)),
        new_step("c", bytes_.new()),
        new_step("sum", total.new(), depends_on=["a", "b", "c"]),
    ]
    id = claimq_client.submit("report", steps=steps).id
    run_worker(own)
    assert claimq_client.get(id)["result"] == {"a": 1, "b": 2, "c": "/wA=", "sum": 5}
    with pytest.raises(ValueError, match="step a: a step has no idempotency_key"):
        new_step("a", new_task("t", key="k"))
    with pytest.raises(ValueError, match="params and payload are both given"):
        new_task("t", {"a": 1}, payload=b"")


def test_submit_many(claimq_client: Client) -> None:
    tasks = [new_task("t", {"i": i}) for i in range(2_100)]
    assert [s.id for s in claimq_client.submit_many(tasks)] == list(range(1, 2_101))
    with pytest.raises(SubmitManyError) as e:
        bad_task = new_task("t", 1) | {"task_type": "bad type"}
        claimq_client.submit_many([new_task("t", 1), bad_task, new_task("t", 1)])
    good, bad, also_good = e.value.results
    assert (getattr(good, "id"), getattr(also_good, "id")) == (2_101, 2_102)
    assert getattr(bad, "field") == "tasks[1].task_type"
    large = [new_task("t", "x" * 1_000_000) for _ in range(10)]
    assert len(claimq_client.submit_many(large)) == 10


def test_snoozed_without_end(claimq_client: Client, run_worker: RunWorker) -> None:
    own = App()

    @own.task("again")
    def again() -> None:
        raise Snooze(0)

    task = claimq_client.submit("again", {})
    expected = rf"task {task.id} \(again\) was snoozed for 0 s 100 times, and would be without end"
    with pytest.raises(RuntimeError, match=expected):
        run_worker(own)


def test_schedules_of_all_pages(claimq_client: Client, claimq_server: Server) -> None:
    names = [f"s{i:02}" for i in range(12)]  # a page has 8 MiB
    for name in names:
        task = {"task": {"params": "x" * 1_000_000}, "every_ms": 60_000}
        claimq_client.request("PUT", "/api/schedules/" + name, task)
    every = claimq_client.schedules()
    assert [s["name"] for s in every] == names

    async def walk() -> None:
        async with AsyncClient(claimq_server.url, api_key="") as client:
            assert await client.schedules() == every

    asyncio.run(walk())


def test_schedule_with_steps(claimq_client: Client) -> None:
    first = new_step("a", new_task("part", 1))
    second = new_step("b", new_task("part", 2), depends_on=["a"])
    made = claimq_client.set_schedule(
        "nightly",
        {"task": {"steps": [first, second], "finalize": "claim"}, "every_ms": 60_000},
    )["task"]
    steps = [(s["step"], s.get("depends_on")) for s in made.get("steps", [])]
    assert (steps, made.get("finalize")) == ([("a", None), ("b", ["a"])], "claim")


def test_pytest_plugin_without_claimq(pytester: pytest.Pytester, monkeypatch: Any) -> None:
    monkeypatch.setenv("CLAIMQ_BIN", "")
    monkeypatch.setenv("PATH", "")
    pytester.makepyfile("def test(claimq_client): pass")
    result = pytester.runpytest_subprocess("-p", "claimq.pytest_plugin")
    result.stdout.fnmatch_lines(["*the program claimq is not in PATH*CLAIMQ_BIN*"])
