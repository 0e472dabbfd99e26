"""Calls that must not type-check: a strict checker refuses each line that ignores it, and
says so of an ignore that is not needed."""

from __future__ import annotations

from claimq import App, Client, current

app = App()


@app.task("mail")
def send_mail(to: str, subject: str = "") -> dict[str, str]:
    return {"to": to}


@app.task("report")
async def report(month: int) -> None:
    current().progress(1)


def program(client: Client) -> None:
    send_mail.submit()  # type: ignore[call-arg]
    send_mail.submit(to=1)  # type: ignore[arg-type]
    send_mail.submit("ada", body="x")  # type: ignore[call-arg]
    send_mail.new(1)  # type: ignore[arg-type]
    send_mail.options(delay="1 h")  # type: ignore[arg-type]
    send_mail.options(prio=1)  # type: ignore[call-arg]
    number: int = send_mail("ada")  # type: ignore[assignment]
    client.submit("mail", unique="always")  # type: ignore[arg-type]
    client.get(str(number))  # type: ignore[arg-type]
    client.tasks(status="broken")  # type: ignore[arg-type]
    print(client.get(1)["oops"])  # type: ignore[typeddict-item]
    client.batch(["cancel"])  # type: ignore[list-item]


async def aprogram() -> None:
    await report.submit_async(month="November")  # type: ignore[arg-type]
    await report("November")  # type: ignore[arg-type]
