"""Decides what a client does after one try of a call.

This is Go's internal/repeat, and is held to the same vectors (clients/vectors.json). It uses no
clock, network or randomness. Times are seconds.
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from dataclasses import dataclass, field

PAUSE_MIN = 0.02
PAUSE_MAX = 1.0
"""The pause between tries is doubled for each, from PAUSE_MIN up to PAUSE_MAX, with jitter."""

REDIRECTS_MAX = 2
"""The number of redirects in a row that are followed without a pause: while leadership changes,
two nodes may name each other."""

POLL_MAX = 6.0
"""How long one request of a long poll waits at most, so that a connection that died without
a word is left within 10 s."""


class Verdict(enum.Enum):
    """What one try came to."""

    SETTLED = "settled"
    """Answered: success, or a refusal that will not change."""
    REDIRECTED = "redirected"
    """Nothing was written; another node leads."""
    UNWRITTEN = "unwritten"
    """Nothing was written; it may work later or elsewhere."""
    UNKNOWN = "unknown"
    """It may have been done."""


class Action(enum.Enum):
    """What to do after a try."""

    TAKE = "take"
    """The call is settled."""
    FOLLOW = "follow"
    """Ask the node that was named, at once."""
    WAIT = "wait"
    """Pause, then try again."""
    GIVE_UP = "give_up"
    """The outcome is unknown, and a repeat might do harm."""


def judge(status: int, code: str) -> Verdict:
    """Return the verdict on a whole answer that is neither a success nor a redirect.

    code is "" for an answer that is not claimq's: it comes from a proxy, and its status says
    nothing about the node behind it.
    """
    if code in ("", "outcome_unknown") or status < 300:
        return Verdict.UNKNOWN
    if code == "internal":  # final: the server logged it
        return Verdict.SETTLED
    if status < 500 and status != 429:
        return Verdict.SETTLED
    return Verdict.UNWRITTEN


def decides(status: int, code: str) -> bool:
    """Report whether a refusal also says what earlier tries of the call did.

    A refusal of the key, or a fault of the server, comes before the request is looked at.
    """
    return code != "" and status not in (401, 403, 500)


def broken(sent: bool) -> Verdict:
    """Return the verdict on a try without a whole answer.

    sent says whether bytes of the request may have left.
    """
    return Verdict.UNKNOWN if sent else Verdict.UNWRITTEN


@dataclass
class Call:
    """The state of one call over its tries."""

    mutation: bool
    """It may change something, as a GET does not."""
    repeatable: bool
    """The server recognizes a repeat, or a repeat does no harm."""
    tries: int = 0
    """Counts next()."""
    doubted: bool = False
    """A try may have been done, or may still be."""
    _redirects: int = field(default=0, repr=False)

    def next(self, verdict: Verdict) -> Action:
        """Take the verdict on a try and return what to do."""
        self.tries += 1
        if verdict is Verdict.SETTLED:
            return Action.TAKE
        if verdict is Verdict.REDIRECTED:
            self._redirects += 1
            if self._redirects <= REDIRECTS_MAX:
                return Action.FOLLOW
            self._redirects = 0
        elif verdict is Verdict.UNKNOWN and self.mutation:
            self.doubted = True
            if not self.repeatable:
                return Action.GIVE_UP
        return Action.WAIT

    def lost(self) -> Action:
        """Take back a FOLLOW: the node that was named is of no use."""
        self._redirects = 0
        return Action.WAIT

    def pause(self, asked: float, random: Callable[[], float]) -> float:
        """Return how many seconds to wait before the next try.

        asked is the server's request, in addition to the client's own pause. random returns
        a number in [0, 1): up to half of the pause is taken off, to keep clients apart.
        """
        own = min(PAUSE_MIN * (1 << min(max(self.tries - 1, 0), 6)), PAUSE_MAX)
        return own - random() * own / 2 + max(asked, 0.0)


_MARKED = frozenset({"submit", "claim", "complete", "fail", "extend", "release"})
_ALWAYS = frozenset(
    {
        "cancel",
        "delete",
        "patch",
        "set_type",
        "finalization_claim",
        "finalization_extend",
        "finalization_release",
        "finalize",
    }
)


def safe(op: str, marked: bool) -> bool:
    """Report whether a call that may have been done may be made again.

    marked says that the call carries what the server recognizes a repeat by: a submit the
    idempotency key of each task, a claim its request id, a settling call the claim token. A
    retry is never safe: the task may have been claimed in between, and the repeat would take
    it from that worker.
    """
    return op in _ALWAYS or (marked and op in _MARKED)


def batch_safe(op: str, marked: bool) -> bool:
    """Report the same of an op of a batch, where a repeated delete looks like a refusal."""
    return op != "delete" and safe(op, marked)
