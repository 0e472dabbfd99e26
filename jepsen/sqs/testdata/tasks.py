"""Tasks of Celery over kombu's transport for SQS. As a program it sends them: python3 tasks.py COUNT."""

import json
import os
import sys
import time

import celery

app = celery.Celery("tasks", broker=os.environ["BROKER"])
app.conf.update(
    broker_transport_options={"region": "eu-west-1", "visibility_timeout": int(os.environ["VISIBILITY"]), "wait_time_seconds": 1, "polling_interval": 0.1},
    task_acks_late=True,
    task_default_queue="celery",
    task_ignore_result=True,
    worker_enable_remote_control=False,
    worker_redirect_stdouts=False,
)


def say(**line):
    print(json.dumps(line), flush=True)


@app.task(bind=True)
def work(self, text):
    message = self.request.properties["delivery_info"]["sqs_message"]
    say(does=text, id=message["MessageId"], receives=int(message["Attributes"]["ApproximateReceiveCount"]), at=int(time.time() * 1000))


if __name__ == "__main__":
    for i in range(int(sys.argv[1])):
        while True:
            try:
                work.delay(str(i))
                break
            except Exception as e:
                say(unsure=[str(i)], error=str(e))
                time.sleep(0.1)
