"""Calls with a clock that is two hours late: python3 clock.py ENDPOINT."""

import datetime
import sys
import types

import boto3
import botocore.auth
from botocore.exceptions import ClientError


class Late(datetime.datetime):
    @classmethod
    def utcnow(cls):
        return datetime.datetime.utcnow() - datetime.timedelta(hours=2)


for name in ("botocore.auth", "botocore.crt.auth"):  # the other is there with Amazon's library in C
    if name in sys.modules:
        sys.modules[name].datetime = types.SimpleNamespace(datetime=Late, timezone=datetime.timezone)
sqs = boto3.client("sqs", endpoint_url=sys.argv[1], region_name="eu-west-1")
try:
    sqs.list_queues()
except ClientError as e:
    error = e.response["Error"]
    if error["Code"] != "SignatureDoesNotMatch" or not error["Message"].startswith("Signature expired: "):
        raise
else:
    raise SystemExit("the signature is good")
