"""An empty task of Celery, acknowledged late."""

import os

from celery import Celery

app = Celery("bench", broker=os.environ["REDIS"], backend=os.environ["REDIS"])
app.conf.update(
    task_acks_late=True,
    task_default_queue="bench",
    worker_hijack_root_logger=False,
)


@app.task(ignore_result=True)
def bench() -> None:
    pass


@app.task
def lone() -> None:
    pass
