"""A caller in Python's standard library: a request a line on standard input, as JSON, and its
answer a line on standard output."""
import json
import sys
import urllib.error
import urllib.request

for line in sys.stdin:
    asked = json.loads(line)
    body = asked["body"]
    request = urllib.request.Request(asked["url"], method=asked["method"], headers=asked["header"], data=body.encode() if body else None)
    try:
        try:
            answer = urllib.request.urlopen(request, timeout=asked["seconds"])
        except urllib.error.HTTPError as refusal:
            answer = refusal
        with answer:
            said = {"status": answer.status, "header": dict(answer.headers), "body": answer.read().decode()}
    except Exception as error:
        said = {"error": repr(error)}
    print(json.dumps(said), flush=True)
