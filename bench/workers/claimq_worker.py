"""Empty handlers of the Python client, for claimq work --serve."""

from claimq import App

app = App(concurrency=128)


@app.task("bench")
async def bench() -> None:
    pass
