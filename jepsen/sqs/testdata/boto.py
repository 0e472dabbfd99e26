"""What a program with Debian's boto3 does, which speaks the Query protocol: python3 boto.py URL ID SECRET."""

import sys
import urllib.error
import urllib.request

import boto3
from botocore.exceptions import ClientError

url, access, secret = sys.argv[1:]
sqs = boto3.client("sqs", endpoint_url=url, region_name="eu-west-1", aws_access_key_id=access, aws_secret_access_key=secret)


def same(got, want):
    if got != want:
        raise SystemExit(f"got {got!r}, want {want!r}")


def refused(code, call, **parameters):
    try:
        call(**parameters)
    except ClientError as e:
        same(e.response["Error"]["Code"], code)
        return
    raise SystemExit(f"{code} was expected")


queue = sqs.create_queue(QueueName="boto", Attributes={"VisibilityTimeout": "30"}, tags={"team": "a"})["QueueUrl"]
same(sqs.get_queue_url(QueueName="boto")["QueueUrl"], queue)
same(sqs.list_queues(QueueNamePrefix="bo")["QueueUrls"], [queue])
same(sqs.list_queue_tags(QueueUrl=queue)["Tags"], {"team": "a"})
sqs.set_queue_attributes(QueueUrl=queue, Attributes={"DelaySeconds": "0", "VisibilityTimeout": "20"})
same(sqs.get_queue_attributes(QueueUrl=queue, AttributeNames=["VisibilityTimeout"])["Attributes"], {"VisibilityTimeout": "20"})

body = "an émail € \U0001f600\n\r\n\"quoted\" <&> "
attributes = {"n": {"DataType": "Number", "StringValue": "7"}, "b": {"DataType": "Binary", "BinaryValue": b"\x00\xff"}}
sent = sqs.send_message(QueueUrl=queue, MessageBody=body, MessageAttributes=attributes)
received = sqs.receive_message(QueueUrl=queue, AttributeNames=["All"], MessageAttributeNames=["All"], WaitTimeSeconds=5)["Messages"]
same(len(received), 1)
message = received[0]
same(message["Body"], body)
same(message["MessageId"], sent["MessageId"])
same(message["MessageAttributes"], attributes)
same(message["MD5OfMessageAttributes"], sent["MD5OfMessageAttributes"])
same(message["MD5OfBody"], sent["MD5OfMessageBody"])
same(message["Attributes"]["SenderId"], "sqs")
sqs.change_message_visibility(QueueUrl=queue, ReceiptHandle=message["ReceiptHandle"], VisibilityTimeout=0)
again = sqs.receive_message(QueueUrl=queue, AttributeNames=["ApproximateReceiveCount"], WaitTimeSeconds=5)["Messages"][0]
same(again["Attributes"], {"ApproximateReceiveCount": "2"})
sqs.delete_message(QueueUrl=queue, ReceiptHandle=again["ReceiptHandle"])

done = sqs.send_message_batch(QueueUrl=queue, Entries=[{"Id": str(i), "MessageBody": str(i)} for i in range(10)])
same(len(done["Successful"]), 10)
left = {str(i) for i in range(10)}
while left:
    some = sqs.receive_message(QueueUrl=queue, MaxNumberOfMessages=10, WaitTimeSeconds=5)["Messages"]
    left -= {m["Body"] for m in some}
    gone = sqs.delete_message_batch(QueueUrl=queue, Entries=[{"Id": m["MessageId"], "ReceiptHandle": m["ReceiptHandle"]} for m in some])
    same("Failed" in gone, False)
same("Messages" in sqs.receive_message(QueueUrl=queue), False)

fifo = sqs.create_queue(QueueName="boto.fifo", Attributes={"FifoQueue": "true"})["QueueUrl"]
ids = [sqs.send_message(QueueUrl=fifo, MessageBody=d, MessageGroupId="g", MessageDeduplicationId=d)["MessageId"] for d in "aabcc"]
same(ids[0] == ids[1] and ids[3] == ids[4], True)
run = sqs.receive_message(QueueUrl=fifo, AttributeNames=["MessageGroupId"], MaxNumberOfMessages=10, WaitTimeSeconds=5)["Messages"]
same([(m["Body"], m["MessageId"], m["Attributes"]["MessageGroupId"]) for m in run], [("a", ids[0], "g"), ("b", ids[2], "g"), ("c", ids[3], "g")])
refused("MissingParameter", sqs.send_message, QueueUrl=fifo, MessageBody="x", MessageDeduplicationId="x")

refused("AWS.SimpleQueueService.NonExistentQueue", sqs.send_message, QueueUrl=queue + "x", MessageBody="x")
refused("ReceiptHandleIsInvalid", sqs.delete_message, QueueUrl=queue, ReceiptHandle="forged")
refused("InvalidParameterValue", sqs.receive_message, QueueUrl=queue, MaxNumberOfMessages=11)
try:
    sqs.get_queue_url(QueueName="missing")
    raise SystemExit("it is there")
except sqs.exceptions.QueueDoesNotExist:
    pass

# A URL that was signed does what it says, once it is not changed.
signed = sqs.generate_presigned_url("send_message", Params={"QueueUrl": queue, "MessageBody": "x"}, HttpMethod="GET")
same(urllib.request.urlopen(signed).status, 200)
try:
    urllib.request.urlopen(signed.replace("MessageBody=x", "MessageBody=y"))
    raise SystemExit("a changed URL is obeyed")
except urllib.error.HTTPError as e:
    same(e.code, 403)
same(sqs.get_queue_attributes(QueueUrl=queue, AttributeNames=["All"])["Attributes"]["ApproximateNumberOfMessages"], "1")
sqs.purge_queue(QueueUrl=queue)
sqs.delete_queue(QueueUrl=queue)
print("done")
