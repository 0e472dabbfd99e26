"""The worker's side of the protocol of served programs, against a claimq of the test's."""

from __future__ import annotations

import asyncio
import enum
import json
import re
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from claimq import App, Permanent, RetryAfter, Snooze, current, new_step, new_task
from claimq._serve import ProtocolError, cut, serve

LIMITS = {
    "line_bytes": 8 << 20,
    "value_bytes": 1000,
    "error_bytes": 16384,
    "progress_bytes": 100,
    "submit": 1000,
}
PROTOCOL = (Path(__file__).parents[3] / "docs/protocol.md").read_text()


class Parent:
    """What claimq is to a program that it serves."""

    def __init__(self, app: App) -> None:
        self.sock, theirs = socket.socketpair()
        self.sock.settimeout(20)
        self.file = self.sock.makefile("rb")
        self.clean: bool | None = None
        self.error: Exception | None = None
        self.thread = threading.Thread(target=self._serve, args=(app, theirs))
        self.thread.start()
        self.hello = self.read()
        answer = {"kind": "hello", "protocol": 1, "worker_id": "w1", "limits": LIMITS}
        self.send(answer | {"grace_ms": 300})

    def _serve(self, app: App, theirs: socket.socket) -> None:
        try:
            self.clean = serve(app, theirs)
        except ProtocolError as e:
            self.error = e

    def send(self, message: dict[str, Any]) -> None:
        self.sock.sendall(json.dumps(message).encode() + b"\n")

    def task(self, id: int, type: str, params: Any = None, **more: Any) -> None:
        task = {"kind": "task", "id": id, "token": id + 100, "type": type, "attempt": 1}
        self.send(task | {"params": {} if params is None else params, "timeout_ms": 60000} | more)

    def cancel(self, id: int, why: str) -> None:
        self.send({"kind": "cancel", "id": id, "token": id + 100, "why": why})

    def read(self) -> dict[str, Any]:
        line = self.file.readline()
        assert line, "the program closed the socket"
        message: dict[str, Any] = json.loads(line)
        return message

    def stop(self) -> None:
        self.send({"kind": "stop"})
        assert self.file.readline() == b""
        self.close()

    def close(self) -> None:
        self.file.close()
        self.sock.close()
        self.thread.join(20)
        assert not self.thread.is_alive()


app = App(concurrency=3)
entered = threading.Event()


@app.task("add", concurrency=2, timeout=1.5)
def add(a: int, b: int = 1) -> int:
    return a + b


@app.task("aadd")
async def aadd(a: int, b: int = 1) -> int:
    await asyncio.sleep(0)
    assert current().type == "aadd"
    return a + b


@app.task("aexit")
async def aexit(what: str) -> None:
    raise SystemExit(3) if what == "exit" else KeyboardInterrupt


@app.task("raise")
def raise_(what: str) -> None:
    if what == "permanent":
        raise Permanent("never")
    if what == "retry":
        raise RetryAfter(2.5, "busy")
    if what == "snooze":
        raise Snooze(60)
    if what == "exit":
        sys.exit(3)
    raise ValueError(what)


LOOP: list[Any] = []
LOOP.append(LOOP)


class Kind(enum.StrEnum):
    ONE = "one"


odd_value: Any = None


@app.task("odd")
def odd() -> Any:
    return odd_value


@app.task("decoded", decode=lambda data: {"n": int(json.loads(data)["n"])})
def decoded(n: int) -> int:
    return n


@app.task("left")
async def left() -> Any:
    deadline = current().deadline
    return current().left(), None if deadline is None else deadline - time.monotonic()


@app.task("bytes")
def bytes_() -> bytes:
    return (current().payload or b"") + b"\xff"


@app.task("follow")
def follow(a: int) -> None:
    current().progress({"a": a})
    current().then(add.options(key="k").new(a), new_task("mail", {"to": "ada"}))


@app.task("grow")
def grow(a: int) -> None:
    current().add_steps(new_step("part", add.new(a), depends_on=["first"]))


@app.task("wait")
def wait() -> str:
    entered.set()
    assert current().cancelled.wait(20)
    current().raise_if_cancelled()
    return "not reached"


@app.task("await")
async def await_() -> None:
    entered.set()
    await asyncio.sleep(20)


@app.task("late")
def late() -> str:
    entered.set()
    assert current().cancelled.wait(20)
    return "done all the same"


@app.task("steps")
def steps() -> Any:
    c = current()
    return [c.parent_id, c.step, {k: repr(v) for k, v in c.dependencies.items()}, c.labels, c.attributes]


@pytest.fixture
def parent() -> Iterator[Parent]:
    entered.clear()
    parent = Parent(app)
    yield parent
    if parent.thread.is_alive():
        parent.stop()
    assert parent.error is None


def test_hello(parent: Parent) -> None:
    assert parent.hello["protocol"] == 1
    assert parent.hello["concurrency"] == 3
    assert parent.hello["types"][0] == {"type": "add", "concurrency": 2, "timeout_ms": 1500}
    assert parent.hello["types"][1] == {"type": "aadd"}


@pytest.mark.parametrize("type", ["add", "aadd"])
def test_done(parent: Parent, type: str) -> None:
    parent.task(1, type, {"a": 2, "b": 3})
    assert parent.read() == {"kind": "done", "id": 1, "token": 101, "result": 5}


@pytest.mark.parametrize(
    ("what", "want"),
    [
        ("permanent", {"kind": "fail", "error": "never", "permanent": True}),
        ("retry", {"kind": "fail", "error": "busy", "retry_in_ms": 2500}),
        ("snooze", {"kind": "snooze", "ms": 60000}),
    ],
)
def test_raised_on_purpose(parent: Parent, what: str, want: dict[str, Any]) -> None:
    parent.task(1, "raise", {"what": what})
    assert parent.read() == want | {"id": 1, "token": 101}


def test_exception(parent: Parent) -> None:
    parent.task(1, "raise", {"what": "bad luck"})
    error = parent.read()["error"]
    lines = error.splitlines()
    assert lines[0] == "ValueError: bad luck"  # by which failures are grouped
    assert lines[2] == "Traceback (most recent call last):"
    assert "_outcome.py" not in error
    assert "raise ValueError(what)" in error


def test_exit_of_a_handler(parent: Parent) -> None:
    parent.task(1, "raise", {"what": "exit"})
    assert parent.read()["error"].startswith("RuntimeError: the handler raised SystemExit(3)\n")
    for number, what, name in ((2, "exit", "SystemExit"), (3, "interrupt", "KeyboardInterrupt")):
        parent.task(number, "aexit", {"what": what})
        assert parent.read()["error"].startswith(f"RuntimeError: the handler raised {name}(")
    parent.task(9, "aadd", {"a": 1})  # the process goes on
    assert parent.read()["result"] == 2


@pytest.mark.parametrize(
    ("type", "params", "why"),
    [
        ("add", {"c": 1, "d": 2}, "add do not fit its handler add: without argument 'a'"),
        ("aadd", {"a": 1, "d": 2, "c": 1}, "it has no argument 'c', argument 'd'"),
        ("add", [1], "they are a list, no object"),
        ("decoded", {"n": "x"}, "decode raised ValueError: invalid literal for int()"),
    ],
)
def test_params_that_do_not_fit(parent: Parent, type: str, params: Any, why: str) -> None:
    parent.task(1, type, params)
    said = parent.read()
    first, *rest = said["error"].splitlines()
    assert said["permanent"] is True
    assert first.startswith(f"params of {type} do not fit its handler ") and why in first
    assert bool(rest) == (type == "decoded")  # only where a traceback says more


@pytest.mark.parametrize(
    ("value", "why"),
    [
        ("x" * 2000, "the result has 2002 bytes, at most 1000"),
        (object(), "result is of the type object, which JSON does not have"),
        ({"a": [1, float("nan")]}, "result.a[1] is nan, a number that JSON does not have"),
        ((float("inf"),), "result[0] is inf, a number"),
        ({"a": {"b": {1}}}, "result.a.b is of the type set"),
        ([b"x"], "result[0] is of the type bytes"),
        ({"a": {1: 2}}, "result.a has the key 1 (int): it must be a str"),
        ({None: 2}, "result has the key None (NoneType)"),
        (["\ud800"], "result[0] has half of a surrogate pair"),
        ({"\ud800": 1}, "result has the key '\\ud800', which has half of a surrogate pair"),
        (LOOP, "result contains itself, or is nested too deeply"),
    ],
)
def test_results_that_are_none(parent: Parent, value: Any, why: str) -> None:
    global odd_value
    odd_value = value
    parent.task(1, "odd")
    said = parent.read()
    assert said["permanent"] is True and why in said["error"]


def test_results_that_are_json(parent: Parent) -> None:
    global odd_value
    odd_value = {"a": (1, 2.5, None, True), "é": Kind.ONE, "b": [{}, []], "c": 1 << 60}
    parent.task(1, "odd")
    assert parent.read()["result"] == {"a": [1, 2.5, None, True], "é": "one", "b": [{}, []], "c": 1 << 60}


def test_deadline(parent: Parent) -> None:
    for id, timeout in ((1, 60_000), (2, 0)):
        parent.task(id, "left", timeout_ms=timeout)
        left, at_deadline = parent.read()["result"]
        if timeout:
            assert 40 < left <= 60 and abs(at_deadline - left) < 20
        else:
            assert (left, at_deadline) == (None, None)


def test_times_out_of_bounds() -> None:
    for wrong in (1e9, float("nan"), float("inf")):
        with pytest.raises(ValueError, match="after is .*: it must be at most a year"):
            Snooze(wrong)
        with pytest.raises(ValueError, match="after is"):
            RetryAfter(wrong)


def test_bytes(parent: Parent) -> None:
    task = {"kind": "task", "id": 1, "token": 101, "type": "bytes", "attempt": 1}
    parent.send(task | {"payload": "/w=="})
    assert parent.read()["result_payload"] == "//8="


def test_follow_ups_and_progress(parent: Parent) -> None:
    parent.task(1, "follow", {"a": 7})
    assert parent.read() == {"kind": "progress", "id": 1, "token": 101, "progress": {"a": 7}}
    done = parent.read()
    assert done["submit"] == [
        {"task_type": "add", "params": {"a": 7}, "idempotency_key": "k"},
        {"task_type": "mail", "params": {"to": "ada"}},
    ]
    parent.task(2, "follow", {"a": 10**200})
    assert "must be 1 to 100" in parent.read()["error"]


def test_added_steps(parent: Parent) -> None:
    task = {"kind": "task", "id": 1, "token": 101, "type": "grow", "attempt": 1}
    parent.send(task | {"params": {"a": 7}, "parent_id": 5, "step": "first"})
    step = {"task_type": "add", "params": {"a": 7}, "step": "part", "depends_on": ["first"]}
    assert parent.read() == {"kind": "done", "id": 1, "token": 101, "steps": [step]}
    parent.send(task | {"id": 2, "params": {"a": 7}})
    assert "is no step" in parent.read()["error"]


@pytest.mark.parametrize("type", ["wait", "await"])
@pytest.mark.parametrize("why", ["cancel_requested", "timeout", "shutdown", "lease_lost"])
def test_cancel(parent: Parent, type: str, why: str) -> None:
    parent.task(1, type)
    assert entered.wait(20)
    parent.cancel(1, why)
    said = {"kind": "fail", "id": 1, "token": 101, "error": f"told to stop: {why}"}
    assert parent.read() == said
    parent.cancel(1, why)  # it crossed the answer
    parent.task(2, "add", {"a": 1})
    assert parent.read()["result"] == 2


def test_cancel_of_what_is_done_all_the_same(parent: Parent) -> None:
    parent.task(1, "late")
    assert entered.wait(20)
    parent.cancel(1, "cancel_requested")
    assert parent.read()["result"] == "done all the same"


def test_steps(parent: Parent) -> None:
    dependencies = {"a": {"result": 1}, "b": {"result_payload": "/w=="}, "c": {}}
    said = {"labels": {"x": "y"}, "attributes": {"a": {"b": 1}}}
    parent.task(1, "steps", parent_id=9, step="s", dependencies=dependencies, **said)
    want = [9, "s", {"a": "1", "b": "b'\\xff'", "c": "None"}, *said.values()]
    assert parent.read()["result"] == want


def test_stop_waits_for_what_runs(parent: Parent) -> None:
    parent.task(1, "late")
    assert entered.wait(20)
    parent.send({"kind": "stop"})
    parent.cancel(1, "shutdown")
    assert parent.read()["kind"] == "done"
    assert parent.file.readline() == b""
    parent.close()
    assert parent.clean is True


def test_claimq_goes(parent: Parent) -> None:
    parent.task(1, "wait")
    parent.task(2, "await")
    assert entered.wait(20)
    parent.close()
    assert parent.clean is True


def test_claimq_goes_and_a_handler_stays() -> None:
    stays = App(concurrency=1)
    release = threading.Event()

    @stays.task("deaf")
    def deaf() -> None:
        entered.set()
        release.wait(20)

    entered.clear()
    parent = Parent(stays)
    parent.task(1, "deaf")
    assert entered.wait(20)
    parent.close()
    release.set()
    assert parent.clean is False


@pytest.mark.parametrize("line", [b"[]\n", b"{\n", b'{"kind":"dance"}\n', b'{"kind":"hello"}\n'])
def test_garbage(line: bytes) -> None:
    parent = Parent(app)
    parent.sock.sendall(line)
    parent.file.readline()
    parent.close()
    assert parent.error is not None
    assert repr(line.rstrip(b"\n")) in str(parent.error)


def test_many_lines_in_pieces(parent: Parent) -> None:
    lines = b"".join(
        json.dumps(
            {"kind": "task", "id": i, "token": i, "type": t, "attempt": 1, "params": {"a": i}}
        ).encode()
        + b"\n"
        for i, t in zip(range(1, 400), ["add", "aadd", "add"] * 200)
    )
    for at in range(0, len(lines), 1000):
        parent.sock.sendall(lines[at : at + 1000])
    results = {m["id"]: m["result"] for m in (parent.read() for _ in range(399))}
    assert results == {i: i + 1 for i in range(1, 400)}


def test_cut() -> None:
    assert cut("é" * 10, 100) == "é" * 10
    short = cut("ValueError: x\n" + "é" * 1000 + "end", 100)
    assert len(short.encode()) <= 100
    assert short.startswith("ValueError: x\n") and short.endswith("end")
    assert "\x00" not in cut("a\x00b", 100)


def test_transcript() -> None:
    """The program of docs/protocol.md, written with this package, says what it says there."""
    mail = App(concurrency=1)

    @mail.task("mail", timeout=60)
    def send(**params: Any) -> Any:
        c = current()
        if c.payload is not None:
            raise RetryAfter(60, "no answer")
        c.progress({"connected": True})
        c.then(new_task("count", {"sent": 1}))
        return {"sent": 1}

    found = re.search(r"<!-- transcript -->\n```text\n(.*?)```", PROTOCOL, re.S)
    assert found is not None
    sock, theirs = socket.socketpair()
    thread = threading.Thread(target=serve, args=(mail, theirs))
    thread.start()
    file = sock.makefile("rb")
    for line in found.group(1).splitlines():
        who, _, text = line.partition(":")
        message = json.loads(text) if line.startswith(("program", "claimq")) else {}
        if message.get("id") == 4:  # params that are no object are not for this package
            continue
        if who == "claimq":
            sock.sendall(text.strip().encode() + b"\n")
        elif who == "program":
            said = json.loads(file.readline())
            if message["kind"] == "hello":
                message["client"] = said["client"]
            assert said == message
    assert file.readline() == b""
    thread.join(20)
    file.close()
    sock.close()


PROGRAM = """
import subprocess, sys
from claimq import App, current
app = App(concurrency=1)
@app.task("echo")
def echo(text: str) -> str:
    print("to stdout:", text)
    print("to stderr:", text, file=sys.stderr)
    subprocess.run(["true"], check=True)
    return text
@app.task("odd")
def odd(what: str):
    if what == "progress":
        current().progress("x" * 5000)
    return {"set": {1}, "nan": float("nan"), "large": "x" * (1 << 20)}[what]
"""


def test_run_as_a_child(tmp_path: Path) -> None:
    (tmp_path / "prog.py").write_text(PROGRAM)
    ours, theirs = socket.socketpair()
    child = subprocess.Popen(
        [sys.executable, "-m", "claimq.run", "prog:app"],
        cwd=tmp_path,
        pass_fds=[theirs.fileno()],
        env={"CLAIMQ_FD": str(theirs.fileno()), "PYTHONPATH": ":".join(sys.path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    theirs.close()
    ours.settimeout(20)
    file = ours.makefile("rb")
    assert json.loads(file.readline())["types"] == [{"type": "echo"}, {"type": "odd"}]
    hello = {"kind": "hello", "protocol": 1, "worker_id": "w", "limits": LIMITS, "grace_ms": 5000}
    task = {"kind": "task", "id": 1, "token": 1, "type": "echo", "attempt": 1}
    task["params"] = {"text": "hi"}
    for message in (hello, task):
        ours.sendall(json.dumps(message).encode() + b"\n")
    assert json.loads(file.readline())["result"] == "hi"
    child.terminate()  # a supervisor signals all processes: claimq says when to stop
    ours.sendall(b'{"kind":"stop"}\n')
    assert file.readline() == b""
    out, err = child.communicate(timeout=20)
    assert (child.returncode, out, err) == (0, "to stdout: hi\n", "to stderr: hi\n")
    file.close()
    ours.close()


def test_run_by_hand(tmp_path: Path) -> None:
    (tmp_path / "prog.py").write_text(PROGRAM)

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "claimq.run", *arguments]
        env = {"PYTHONPATH": ":".join(sys.path)}
        return subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True)

    done = run("prog", "--task", "echo", "--params", '{"text": "hi"}')
    assert (done.returncode, done.stdout) == (0, 'to stdout: hi\n"hi"\n')
    assert run("prog", "--task", "echo").returncode == 100  # its params do not fit
    for what, error in (
        ("set", "what the handler returned is no JSON: result is of the type set"),
        ("nan", "what the handler returned is no JSON: result is nan"),
        ("large", "the result has 1048578 bytes, at most 1048576"),
    ):
        refused = run("prog", "--task", "odd", "--params", json.dumps({"what": what}))
        assert (refused.returncode, refused.stdout) == (100, "")
        assert error in refused.stderr
    progress = run("prog", "--task", "odd", "--params", '{"what": "progress"}')
    assert progress.returncode == 1
    assert "progress has 5002 bytes of JSON: it must be 1 to 4096" in progress.stderr
    assert "there are ['echo', 'odd']" in run("prog", "--task", "eco").stderr
    assert "prog has no App called ap" in run("prog:ap").stderr
    assert "claimq work --serve" in run("prog").stderr


def test_run_says_why_there_is_no_app(tmp_path: Path) -> None:
    """What the module itself raises has its traceback; what the command line got wrong has none."""
    for name, text in (
        ("lacks", "import no_such_library"),
        ("value", "PORT = int('eighty')"),
        ("empty", "from claimq import App\napp = App()"),
    ):
        (tmp_path / f"{name}.py").write_text(text + "\n")

    def run(name: str, **env: str) -> str:
        done = subprocess.run(
            [sys.executable, "-m", "claimq.run", name],
            cwd=tmp_path,
            env={"PYTHONPATH": ":".join(sys.path)} | env,
            capture_output=True,
            text=True,
        )
        assert done.returncode > 0
        return done.stderr

    for name, line in (("lacks", "import no_such_library"), ("value", "PORT = int('eighty')")):
        error = run(name)
        assert "Traceback" in error and f'{name}.py", line 1' in error and line in error
    (tmp_path / "prog.py").write_text(PROGRAM)
    for error, want in (
        (run("prg"), f"No module named 'prg', in {tmp_path} or elsewhere in Python's path"),
        (run("./prog.py"), "'./prog.py' is no module: it must be a name, as myapp.worker"),
        (run(""), "'' is no module"),
        (run("empty"), "empty has no handlers"),
        (run("prog", CLAIMQ_SOCKET="/no/such"), "CLAIMQ_SOCKET is '/no/such': it must be"),
        (run("prog", CLAIMQ_FD="77"), "CLAIMQ_FD is '77': it must be the descriptor of a socket"),
        (run("prog", CLAIMQ_FD="x"), "CLAIMQ_FD is 'x': it must be"),
    ):
        assert want in error
        assert "Traceback" not in error


def test_a_blocked_thread_holds_nobody_up(parent: Parent) -> None:
    parent.task(1, "late")
    assert entered.wait(20)
    began = time.monotonic()
    parent.task(2, "aadd", {"a": 1})
    assert parent.read()["result"] == 2
    assert time.monotonic() - began < 10
    parent.cancel(1, "timeout")
    assert parent.read()["id"] == 1
