"""A program as users write it: a strict type checker has nothing to say."""

from __future__ import annotations

from typing import Any

from claimq import App, AsyncClient, Backoff, Client, Submitted, current, new_task, types
from claimq.testing import Done, Outcome, run

app = App()


@app.task("mail", concurrency=5, timeout=60)
def send_mail(to: str, subject: str = "") -> dict[str, str]:
    current().progress({"sent": 0})
    current().raise_if_cancelled()
    return {"to": to}


@app.task("report")
async def report(month: int) -> None:
    current().then(send_mail.new(to="ada@example.org"))


def program() -> None:
    result: dict[str, str] = send_mail(to="ada@example.org")
    submitted: Submitted = send_mail.submit(to=result["to"])
    send_mail.options(delay=60, key="mail-7", backoff=Backoff(1, 60)).submit("ada", subject="x")
    outcome: Outcome = run(send_mail, to="ada")
    if isinstance(outcome, Done):
        value: Any = outcome.result
        print(value)
    with Client() as client:
        task: types.Task = client.get(submitted.id)
        status: types.Status = task["status"]
        print(status, task.get("params"), task.get("error"))
        for listed in client.tasks(status="failed"):
            print(listed["id"])
        client.submit_many([new_task("a", 1), send_mail.new("ada")])
        client.batch([{"op": "submit", "task_type": "a", "params": 1}, {"op": "cancel", "id": 7}])


async def aprogram() -> None:
    await report(month=11)
    submitted: Submitted = await report.submit_async(month=11)
    async with AsyncClient() as client:
        print((await client.wait(submitted.id))["status"])
        async for event in client.follow(task_type="mail"):
            print(event["event"], event["task_id"])
