"""The release of main.go in Python.

    claimq work --serve -- python3 -m claimq.run release:app
    python3 release.py
"""

import json
from typing import Any

from claimq import App, Client, Permanent, current, new_step, new_task

app = App()


@app.task("release.test")
def test(on: str) -> Any:
    return {"passed": {"linux": 40, "mac": 2}[on]}


@app.task("release.pack")
def pack() -> Any:
    return {"passed": sum(found["passed"] for found in current().dependencies.values())}


@app.task("release.ship")
def ship() -> Any:
    if not current().signal["approved"]:
        raise Permanent("it was not approved")
    return {"shipped": True}


def main() -> None:
    with Client() as client:
        steps = [
            new_step("linux", test.new(on="linux")),
            new_step("mac", test.new(on="mac")),
            new_step("pack", pack.new(), depends_on=["linux", "mac"]),
            new_step(
                "ship", new_task("release.ship", wait_for_signal=86_400), depends_on=["pack"]
            ),
        ]
        release = client.submit_task(new_task("release", steps=steps)).id
        ids = {s["step"]: s["id"] for s in client.get(release)["steps"]}
        packed = client.wait(ids["pack"], timeout=60)
        print(f"release {release}: {json.dumps(packed['result'])}. Ship it? (y/n)", flush=True)
        client.signal(ids["ship"], {"approved": input() == "y"})
        ended = client.wait(ids["ship"], timeout=60)
        print(f"{ended['status']}: {ended.get('error') or json.dumps(ended.get('result'))}")


if __name__ == "__main__":
    main()
