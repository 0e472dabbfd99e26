"""What the server takes of a task, so that what it would refuse is refused before it is sent.

clients/options.json, which is made by the server's decoder, has examples of each field; a
test holds this file to them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sized
from datetime import datetime
from typing import Any, NamedTuple, cast

from .errors import Invalid

TIME_MAX = 365 * 24 * 3_600
"""Seconds; bounds delays, backoffs, and how long a handler may take or have its task wait."""

_DAY_MS = 24 * 3_600_000
_TIME_MAX_MS = TIME_MAX * 1_000

_INT32_MAX = 2**31 - 1
_LABELS_MAX, _LABEL_BYTES = 16, 64

_Test = Callable[[object], bool]


class _Rule(NamedTuple):
    """What a value must be."""

    holds: _Test
    text: str


def _integer(low: int, high: int) -> _Rule:
    def holds(value: object) -> bool:
        return isinstance(value, int) and not isinstance(value, bool) and low <= value <= high

    return _Rule(holds, f"an integer from {low} to {high}")


def _number(low: int, high: int) -> _Rule:
    def holds(value: object) -> bool:
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            return False
        return low <= value <= high

    return _Rule(holds, f"a number from {low} to {high}")


def _one_of(*texts: str) -> _Rule:
    def holds(value: object) -> bool:
        return value in texts

    return _Rule(holds, " or ".join(f'"{text}"' for text in texts))


_CONTROL = re.compile("[\x00-\x1f\x7f]")


def _is_key(value: object, most: int) -> bool:
    if not isinstance(value, str) or _CONTROL.search(value):
        return False
    return 1 <= len(value.encode("utf-8", "surrogatepass")) <= most


def _key(most: int) -> _Rule:
    def holds(value: object) -> bool:
        return _is_key(value, most)

    return _Rule(holds, f"a string of 1 to {most} bytes without control characters")


def _matching(pattern: str, text: str) -> _Rule:
    whole = re.compile(pattern)

    def holds(value: object) -> bool:
        return isinstance(value, str) and whole.fullmatch(value) is not None

    return _Rule(holds, text)


TYPE = _matching(
    r"(?!\.{1,2}\Z)[A-Za-z0-9_.:-]{1,128}",
    "1 to 128 of A-Z a-z 0-9 _ . : -, and neither . nor .. alone",
)
"""Of task types, and of the names of steps."""


def _time_of(text: str) -> datetime:
    return datetime.fromisoformat(text)


def _is_time(value: object) -> bool:
    try:
        return isinstance(value, str) and _time_of(value).timestamp() >= 0
    except ValueError:
        return False


_TIME = _Rule(_is_time, "a time of the years 1970 to 9999, in UTC")
_DELAY = _integer(0, _TIME_MAX_MS)


def _is_idempotency_key(value: object) -> bool:
    return _is_key(value, 256) and value not in (".", "..")


def _is_steps(value: object) -> bool:
    return isinstance(value, list) and 1 <= len(cast(Sized, value)) <= 1_000


def _is_bool(value: object) -> bool:
    return isinstance(value, bool)


def _is_object(value: object) -> bool:
    return isinstance(value, dict)


_RULES: Mapping[str, _Rule] = {
    "task_type": TYPE,
    "idempotency_key": _Rule(
        _is_idempotency_key,
        "a string of 1 to 256 bytes without control characters, and neither . nor ..",
    ),
    "unique": _one_of("exists", "active", "replace", "window"),
    "unique_ms": _integer(1, _DAY_MS),
    "delay_ms": _DELAY,
    "run_at": _TIME,
    "expires_at": _TIME,
    "expires_again": _Rule(_is_bool, "True or False"),
    "priority": _integer(-_INT32_MAX - 1, _INT32_MAX),
    "max_attempts": _integer(0, _INT32_MAX),
    "lease_ms": _integer(100, _DAY_MS),
    "retention_ms": _integer(-1, 100 * _TIME_MAX_MS),
    "attributes": _Rule(_is_object, "an object"),
    "group": _key(128),
    "share_key": _key(128),
    "wait_for_signal_ms": _integer(1, _TIME_MAX_MS),
    "traceparent": _matching(
        r"00-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}",
        "a W3C trace context in lower case, 00-<32 hex digits>-<16>-<2>",
    ),
    "steps": _Rule(_is_steps, "1 to 1000 steps"),
    "finalize": _one_of("auto", "claim"),
    "on_step_failure": _one_of("fail", "continue"),
}

_BACKOFF: Mapping[str, _Rule] = {
    "initial_ms": _DELAY,
    "max_ms": _integer(1, _TIME_MAX_MS),
    "factor": _number(1, 1_000),
    "jitter": _number(0, 1),
}


def refused(field: str, why: str) -> Invalid:
    """Return the error of a field that the server would refuse."""
    return Invalid(f"{field} {why}", code="invalid_task", field=field)


def _hold(rules: Mapping[str, _Rule], fields: Mapping[str, Any], path: str) -> None:
    for name, value in fields.items():
        rule = rules.get(name)
        if rule is not None and not rule.holds(value):
            raise refused(path + name, f"is {value!r:.100}: it must be {rule.text}")


def check(task: Mapping[str, Any]) -> None:
    """Raise Invalid, as the server would, for an option of a task as the API takes it."""
    _hold(_RULES, task, "")
    if "backoff" in task:
        _check_backoff(task["backoff"])
    if "labels" in task:
        _check_labels(task["labels"])
    if (task.get("unique") == "window") != ("unique_ms" in task):
        raise refused("unique_ms", "and unique: window are not given together: give both")
    if task.get("unique") in ("active", "replace", "window") and "idempotency_key" not in task:
        raise refused("unique", "is given without a key, which is to be unique")
    if "run_at" in task and "delay_ms" in task:
        raise refused("delay_ms", "and run_at are both given: give one of them")
    if "run_at" in task and "expires_at" in task:
        if _time_of(task["expires_at"]) <= _time_of(task["run_at"]):
            raise refused("expires_at", "is not after run_at: the task could never be claimed")
    if task.get("expires_again") and "expires_at" not in task:
        raise refused("expires_again", "is given without expires_at: give both")
    if "steps" in task:
        for only in (
            *("run_at", "delay_ms", "expires_at", "group", "share_key"),
            "wait_for_signal_ms",
        ):
            if only in task:
                raise refused(only, "is given, which a task with steps cannot have: its steps can")
        return
    for only in ("finalize", "on_step_failure"):
        if only in task:
            raise refused(only, "is given, which is only for a task with steps")


def _check_backoff(backoff: Any) -> None:
    if not _is_object(backoff):
        raise refused("backoff", f"is {backoff!r:.100}: it must be a backoff")
    _hold(_BACKOFF, backoff, "backoff.")
    if "initial_ms" not in backoff:
        raise refused("backoff.initial_ms", "is missing")
    initial, most = backoff["initial_ms"], backoff.get("max_ms", _TIME_MAX_MS)
    if most < initial:
        raise refused("backoff.max_ms", f"is {most}: it must not be below initial_ms, {initial}")


def _check_labels(labels: Any) -> None:
    name_rule = f"names of 1 to {_LABEL_BYTES} bytes without : and control characters"
    if not _is_object(labels):
        raise refused("labels", f"are {labels!r:.100}: they must be an object")
    if len(labels) > _LABELS_MAX:
        raise refused("labels", f"are {len(labels)}: at most {_LABELS_MAX} are taken")
    for name, value in labels.items():
        if not _is_key(name, _LABEL_BYTES) or ":" in name:
            raise refused("labels", f"have {name!r:.100}: they must have {name_rule}")
        if value != "" and not _is_key(value, _LABEL_BYTES):
            rule = f"a string of up to {_LABEL_BYTES} bytes without control characters"
            raise refused(f"labels.{name}", f"is {value!r:.100}: it must be {rule}")
