"""Sends messages and does them by Debian's boto3: python3 client.py ENDPOINT QUEUE_URL COUNT.

It says in lines of JSON what it does (package sqs reads them), and ends when its input does. With HELD set, a message is
deleted once a line comes.
"""

import json
import os
import sys
import threading
import time

import boto3

endpoint, queue, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
sqs = boto3.client("sqs", endpoint_url=endpoint, region_name="eu-west-1")
held = threading.Event()
if "HELD" not in os.environ:
    held.set()
printing = threading.Lock()


def say(**line):
    with printing:
        print(json.dumps(line), flush=True)


def send():
    for i in range(0, count, 10):
        left = [str(k) for k in range(i, min(i + 10, count))]
        while left:
            try:
                answer = sqs.send_message_batch(QueueUrl=queue, Entries=[{"Id": str(k), "MessageBody": text} for k, text in enumerate(left)])
                left = [left[int(f["Id"])] for f in answer.get("Failed", [])]
            except Exception as e:
                say(unsure=left, error=str(e))
                time.sleep(0.1)


def work():
    while True:
        try:
            asked = time.time()
            messages = sqs.receive_message(QueueUrl=queue, MaxNumberOfMessages=10, WaitTimeSeconds=1, AttributeNames=["ApproximateReceiveCount"]).get("Messages", [])
            if not messages:
                continue
            waits = not held.is_set()  # before a line says that it has them: the reader may answer at once
            for m in messages:
                say(does=m["Body"], id=m["MessageId"], receives=int(m["Attributes"]["ApproximateReceiveCount"]), asked=int(asked * 1000), at=int(time.time() * 1000))
            held.wait()
            sqs.delete_message_batch(QueueUrl=queue, Entries=[{"Id": str(i), "ReceiptHandle": m["ReceiptHandle"]} for i, m in enumerate(messages)])
            if waits:
                for m in messages:
                    say(deleted=m["Body"])
        except Exception as e:
            say(error=str(e))
            time.sleep(0.1)


for target in (send, work):
    threading.Thread(target=target, daemon=True).start()
for _ in sys.stdin:
    held.set()
os._exit(0)
