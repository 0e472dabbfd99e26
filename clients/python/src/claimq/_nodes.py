"""Decides which node of a cluster gets a client's next request.

That is the leader that a node named, or one of the configured endpoints, the last that
answered. It sends nothing itself; its caller tells it the outcome of each request. This is
Go's client/internal/nodes. Times are seconds of a monotonic clock.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

SHUN_MIN = 3.0
SHUN_MAX = 120.0
"""For how long an address that gave no answer is not asked while another can be: SHUN_MIN,
doubled for each time in a row, up to SHUN_MAX."""

PROBE_MAX = 10.0
"""For how long the one call that tries such an address keeps the others from it, if it does
not say how it went."""

ADDRESSES_MAX = 256
"""Bounds the addresses that something is known of."""


@dataclass
class _Address:
    answered: bool = False  # since it last gave no answer
    failures: int = 0  # how often in a row it gave none
    probing: bool = False  # one call tries it
    shunned: float = 0.0  # it is not asked before, while another can be
    held: float = 0.0  # the same, as it asked for it

    @property
    def free(self) -> float:
        return max(self.shunned, self.held)

    def probe(self, now: float) -> None:
        """Note that one call tries the address, so that others leave it alone meanwhile."""
        if now >= self.shunned:
            self.probing, self.shunned = True, now + PROBE_MAX


class Nodes:
    """Decides which node gets a request. Threads may share it."""

    def __init__(self, endpoints: Sequence[str]) -> None:
        """Take the endpoints: at least one, each a base URL."""
        self.endpoints = tuple(endpoints)
        self._lock = threading.Lock()
        self._current = 0  # index of the endpoint to ask: the last that answered
        self._leader = ""  # base URL that a node named, and that has answered
        self._shun_until = 0.0  # no leader is followed before
        self._known: dict[str, _Address] = {}

    def pick(self, now: float) -> tuple[str, bool]:
        """Return the base URL to send to, and whether to ask there for the leader's address
        in place of having the call passed on."""
        with self._lock:
            redirect = now >= self._shun_until
            if self._leader and redirect:
                leader = self._known.get(self._leader)
                if leader is None or now >= leader.held:
                    return self._leader, True
                redirect = False  # it would be named again
            self._current = self._next(now)
            base = self.endpoints[self._current]
            address = self._known.get(base)
            if address is not None and address.failures > 0:
                address.probe(now)
            return base, redirect

    def _next(self, now: float) -> int:
        """Return the first endpoint from the current one on that can be asked, else the one
        that can be soonest."""
        count = len(self.endpoints)
        order = [(self._current + i) % count for i in range(count)]

        def free(i: int) -> float:
            address = self._known.get(self.endpoints[i])
            return 0.0 if address is None else address.free

        for i in order:
            if now >= free(i):
                return i
        return min(order, key=free)

    def follow(self, origin: str, location: str, now: float) -> str | None:
        """Take the leader's address as the node at origin named it, and return the base URL
        to ask.

        That is "" if another call finds out at this time whether it can be reached, or has
        just found that it cannot: then the call is better passed on. It is None if the
        address is of no use.
        """
        try:
            parts = urlsplit(location)
        except ValueError:
            return None
        if not parts.netloc or parts.scheme not in ("http", "https"):
            return None
        # An API key that was sent encrypted must not be sent in the clear.
        if origin.startswith("https://") and parts.scheme != "https":
            return None
        to = f"{parts.scheme}://{parts.netloc}"
        if to == origin:
            return None
        with self._lock:
            address = self._address(to)
            if address.answered:
                return to
            if now < address.shunned:
                if not address.probing:
                    self._shun_until = max(self._shun_until, address.shunned)
                return ""
            address.probe(now)
            return to

    def _address(self, to: str) -> _Address:
        address = self._known.get(to)
        if address is None:
            if len(self._known) >= ADDRESSES_MAX:
                self._known.clear()  # it is all learned again
            address = self._known[to] = _Address()
        return address

    def answered(self, base: str, followed: bool) -> None:
        """Note that the node at base gave an answer, of any kind. followed says that
        another named it as the leader."""
        with self._lock:
            if followed:
                self._leader = base
            address = self._address(base)
            if not address.answered:
                self._known[base] = _Address(answered=True, held=address.held)

    def silent(self, base: str, now: float) -> None:
        """Note that the node at base gave no answer: it is left alone for a while, longer
        each time in a row."""
        with self._lock:
            address = self._address(base)
            if address.probing or now >= address.shunned:  # else another call has told
                shun = min(SHUN_MIN * (1 << min(address.failures, 6)), SHUN_MAX)
                address = self._known[base] = _Address(
                    failures=address.failures + 1, shunned=now + shun, held=address.held
                )
            self._leave(base, address.shunned)

    def shun(self, now: float) -> None:
        """Stop following leaders for a while."""
        with self._lock:
            self._leader = ""
            self._shun_until = now + SHUN_MIN

    def failed(self, base: str, now: float) -> None:
        """Note that the node at base gave no useful answer: a leader is not followed for a
        while, an endpoint makes way for the next."""
        with self._lock:
            self._leave(base, now + SHUN_MIN)

    def _leave(self, base: str, until: float) -> None:
        if base == self._leader or base not in self.endpoints:
            if base == self._leader:
                self._leader = ""
            self._shun_until = max(self._shun_until, until)
        # Many calls may fail on one node at once: they move on by one in all.
        if base == self.endpoints[self._current]:
            self._current = (self._current + 1) % len(self.endpoints)

    def hold(self, base: str, seconds: float, now: float) -> None:
        """Note that the node at base asks to be left alone. It holds for no other."""
        with self._lock:
            self._address(base).held = now + seconds

    def wait(self, now: float) -> float:
        """Return how many seconds it is until there is an endpoint that does not ask to be
        left alone."""
        with self._lock:
            known = (self._known.get(e) for e in self.endpoints)
            return min(0.0 if a is None else max(a.held - now, 0.0) for a in known)
