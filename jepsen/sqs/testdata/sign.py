"""Signs requests by botocore, in headers and as URLs: python3 sign.py HOST ID SECRET, with a list of them as its input."""

import json
import sys
from urllib.parse import urlsplit

from botocore.auth import SigV4Auth, SigV4QueryAuth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

host, access, secret = sys.argv[1:]
signed = []
for i, case in enumerate(json.load(sys.stdin)):
    for kind in (SigV4Auth, SigV4QueryAuth):
        if kind is SigV4QueryAuth and case["Body"]:  # which it would read as parameters
            continue
        header = {name: ",".join(values) for name, values in (case["Header"] or {}).items()}
        request = AWSRequest(method=case["Method"], url=f"http://{host}{case['Target']}", headers=header, data=case["Body"].encode())
        kind(Credentials(access, secret), "sqs", "eu-west-1").add_auth(request)
        url = urlsplit(request.url)
        target = url.path + ("?" + url.query if url.query else "")
        signed.append({"Case": i, "Name": f"{case['Name']}, {kind.__name__}", "Target": target, "Header": dict(request.headers.items())})
json.dump(signed, sys.stdout)
