"""JSON that loses nothing of a value."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from typing import Any, cast


class NotJSON(ValueError):
    """A value has no JSON that says the same."""

    path: str
    """Where that is, as params.lines[2]."""

    def __init__(self, path: str, why: str) -> None:
        """Take the place, and what is wrong there."""
        super().__init__(f"{path} {why}")
        self.path = path


def encode(value: object, name: str = "body") -> bytes:
    """Return JSON of the value; tuples are arrays, as lists are.

    name is the beginning of the path in an error.

    Raises:
        NotJSON: Something in the value is of no kind of JSON, or would become another value:
            NaN, a set, bytes, a key that is no str, half a surrogate pair.
    """
    try:
        text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
        fault = _fault(value)
        if fault is None:
            return text.encode()
    except (TypeError, ValueError, RecursionError) as e:
        try:
            fault = _fault(value, texts=True)
        except RecursionError:
            fault = "", "contains itself, or is nested too deeply"
        fault = fault or ("", f"is no JSON: {e}")
    raise NotJSON(name + fault[0], fault[1])


_PLAIN = frozenset((str, int, bool, type(None)))


def _fault(value: object, texts: bool = False) -> tuple[str, str] | None:
    """Return where in a value the first thing is that encode refuses, and what it is; of
    texts only if they are to be looked at, too."""
    if type(value) in _PLAIN or isinstance(value, (str, int)):
        return _fault_of_text(value) if texts and isinstance(value, str) else None
    if isinstance(value, float):
        if math.isfinite(value):
            return None
        return "", f"is {value}, a number that JSON does not have"
    if isinstance(value, dict):
        fields = cast("dict[Any, object]", value)
        for key, part in fields.items():
            if not isinstance(key, str):
                return "", f"has the key {key!r:.100} ({type(key).__name__}): it must be a str"
            if texts and (fault := _fault_of_text(key)):
                return "", f"has the key {key!a:.100}, which {fault[1]}"
            if (texts or type(part) not in _PLAIN) and (fault := _fault(part, texts)):
                return f".{key}{fault[0]}", fault[1]
        return None
    if isinstance(value, (list, tuple)):
        parts: Iterable[object] = cast("list[object]", value)
        for i, part in enumerate(parts):
            if (texts or type(part) not in _PLAIN) and (fault := _fault(part, texts)):
                return f"[{i}]{fault[0]}", fault[1]
        return None
    return "", f"is of the type {type(value).__name__}, which JSON does not have"


def _fault_of_text(text: str) -> tuple[str, str] | None:
    try:
        text.encode()
    except UnicodeEncodeError:
        return "", "has half of a surrogate pair, which is no text"
    return None
