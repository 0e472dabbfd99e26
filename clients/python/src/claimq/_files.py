"""The API key and the certificates of a client, which may be renewed while it runs."""

from __future__ import annotations

import os
import ssl
import threading
import time
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

T = TypeVar("T")

CHECK_EVERY = 1.0
"""Seconds after which files are looked at again, by the next call."""


class Renewed(Generic[T]):
    """A value that is read from files, and read again when one of them has changed.

    What cannot be read leaves the value from before in force. Threads may share it.
    """

    def __init__(self, files: Sequence[str], read: Callable[[], T]) -> None:
        """Read the value for the first time; raises what read raises."""
        self._files = files
        self._read = read
        self._lock = threading.Lock()
        self._stamp = self._look()
        self._checked = time.monotonic()
        self._value = read()

    def get(self) -> T:
        """Return the value."""
        with self._lock:
            now = time.monotonic()
            if self._files and now - self._checked >= CHECK_EVERY:
                self._checked = now
                stamp = self._look()
                if stamp != self._stamp:
                    try:
                        self._value = self._read()
                        self._stamp = stamp
                    except (OSError, ValueError):
                        pass  # it may be half written: it is looked at again
            return self._value

    def _look(self) -> list[tuple[int, int, int]]:
        stamps: list[tuple[int, int, int]] = []
        for file in self._files:
            try:
                s = os.stat(file)
                stamps.append((s.st_mtime_ns, s.st_ino, s.st_size))
            except OSError:
                stamps.append((0, 0, 0))
        return stamps


def read_key(file: str) -> str:
    """Return the key in a file with one line.

    Raises ValueError if there is no key or there are several lines, OSError if it cannot be
    read.
    """
    with open(file, encoding="ascii") as f:
        key = f.read(16 << 10).strip()
    if not key or "\n" in key:
        raise ValueError(f"API key file {file}: it must have one line, the key")
    return key


def tls_context(ca_file: str | None, cert_file: str | None, key_file: str | None) -> ssl.SSLContext:
    """Return what https endpoints are spoken to with.

    Raises OSError (of which ssl.SSLError is one) if a file cannot be read or is no PEM.
    """
    context = ssl.create_default_context(cafile=ca_file)
    if cert_file:
        context.load_cert_chain(cert_file, key_file)
    return context
