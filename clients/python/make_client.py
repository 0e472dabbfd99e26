"""Writes src/claimq/_client.py, the client without asyncio, from _async_client.py.

    python3 make_client.py

The two differ by what RULES say and by nothing else: a change is made in _async_client.py,
and a test fails while _client.py is another than what is made here.
"""

from __future__ import annotations

from pathlib import Path

PACKAGE = Path(__file__).parent / "src/claimq"
SOURCE, TARGET = PACKAGE / "_async_client.py", PACKAGE / "_client.py"

RULES = [
    (
        '"""The client of a program with asyncio."""',
        '"""The client of a program without asyncio.\n\n'
        'Made from _async_client.py by make_client.py; do not edit.\n"""',
    ),
    ("import asyncio\nimport ssl\n", "import ssl\nimport time\n"),
    ("from ._aio import", "from ._http import"),
    ("Tasks of one event loop may share one.", "Threads may share one."),
    ("AsyncClient", "Client"),
    ("AsyncIterator", "Iterator"),
    ("async def ", "def "),
    ("async with ", "with "),
    ("await asyncio.sleep(", "time.sleep("),
    ("await ", ""),
    ("__aenter__", "__enter__"),
    ("__aexit__", "__exit__"),
]
"""What stands in the source and what takes its place, in this order."""


def make() -> str:
    """Return what _client.py is to be.

    Raises ValueError for a rule that finds nothing, and for what no rule has changed.
    """
    text = SOURCE.read_text(encoding="utf-8")
    for old, new in RULES:
        if old not in text:
            raise ValueError(f"{SOURCE.name} has no {old!r}: take the rule away")
        text = text.replace(old, new)
    code = text.replace("without asyncio", "").replace(SOURCE.name, "")
    for word in ("async", "aio"):
        if word in code:
            raise ValueError(f"{word!r} of {SOURCE.name} is in {TARGET.name}: add a rule")
    return text


if __name__ == "__main__":
    TARGET.write_text(make(), encoding="utf-8")
