"""Configuration of clients: endpoints and credentials."""

from __future__ import annotations

import os
import ssl
from collections.abc import Callable, Sequence
from typing import NamedTuple
from urllib.parse import urlsplit

from ._core import Core
from ._files import Renewed, read_key, tls_context

DEFAULT_ENDPOINT = "http://127.0.0.1:7400"
"""The default address of a node."""

ENDPOINTS_MAX = 100


class Config(NamedTuple):
    """The validated settings of a client."""

    core: Core
    tls: Callable[[], ssl.SSLContext]


def configure(
    endpoints: str | Sequence[str] | None,
    api_key: str | None,
    api_key_file: str | None,
    ca_file: str | None,
    cert_file: str | None,
    key_file: str | None,
    ssl_context: ssl.SSLContext | None,
    timeout: float,
) -> Config:
    """Check the settings of a client; those that are None come from the environment.

    Raises ValueError for an invalid setting, OSError for a file that cannot be read.
    """
    if timeout <= 0:
        raise ValueError(f"timeout is {timeout}: it must be more than 0 seconds")
    if api_key is not None and api_key_file is not None:
        raise ValueError("api_key and api_key_file are both given: give one of them")
    if ssl_context is not None and (ca_file or cert_file or key_file):
        raise ValueError("ssl_context is given with files: give one or the other")
    if api_key is None and api_key_file is None:
        api_key = os.environ.get("CLAIMQ_API_KEY") or None
        if api_key is None:
            api_key_file = os.environ.get("CLAIMQ_API_KEY_FILE") or None
    bases = _endpoints(endpoints)
    core = Core(bases, timeout=timeout, key=_key(api_key, api_key_file))
    return Config(core, _tls(ssl_context, ca_file, cert_file, key_file))


def _endpoints(given: str | Sequence[str] | None) -> list[str]:
    if given is None:
        given = os.environ.get("CLAIMQ_ENDPOINTS", "")
    if isinstance(given, str):
        given = [e.strip() for e in given.split(",") if e.strip()] or [DEFAULT_ENDPOINT]
    if not 1 <= len(given) <= ENDPOINTS_MAX:
        raise ValueError(f"{len(given)} endpoints: there must be 1 to {ENDPOINTS_MAX}")
    return [_endpoint(e) for e in given]


def _endpoint(given: str) -> str:
    """Return a base URL without a slash at its end."""
    parts = urlsplit(given)
    if parts.scheme not in ("http", "https"):
        raise ValueError(f"endpoint {given!r}: it must begin with http:// or https://")
    if not parts.hostname:
        raise ValueError(f"endpoint {given!r}: it has no host")
    if parts.username is not None or parts.query or parts.fragment:
        raise ValueError(f"endpoint {given!r}: it must have no user, query or fragment")
    try:
        _ = parts.port
    except ValueError as e:
        raise ValueError(f"endpoint {given!r}: {e}") from None
    if not (parts.netloc + parts.path).isascii() or any(c <= " " for c in parts.path):
        raise ValueError(f"endpoint {given!r}: it must be percent-encoded ASCII")
    return f"{parts.scheme}://{parts.netloc}{parts.path.rstrip('/')}"


def _key(key: str | None, file: str | None) -> Callable[[], str]:
    if file is not None:
        path = file
        return Renewed([path], lambda: read_key(path)).get
    key = key or ""
    if not key.isascii() or not (key.isprintable() or key == ""):
        raise ValueError("the API key must be of ASCII that is printed")
    value = key
    return lambda: value


def _tls(
    context: ssl.SSLContext | None, ca: str | None, cert: str | None, key: str | None
) -> Callable[[], ssl.SSLContext]:
    if context is not None:
        given = context
        return lambda: given
    ca = ca or os.environ.get("CLAIMQ_CA_FILE") or None
    cert = cert or os.environ.get("CLAIMQ_CERT_FILE") or None
    key = key or os.environ.get("CLAIMQ_KEY_FILE") or None
    if key is not None and cert is None:
        raise ValueError("key_file is given without cert_file")
    files = [f for f in (ca, cert, key) if f is not None]
    if files:
        return Renewed(files, lambda: tls_context(ca, cert, key)).get
    made: list[ssl.SSLContext] = []

    def default() -> ssl.SSLContext:
        if not made:  # reading the system's roots takes long: only who needs it pays
            made.append(tls_context(None, None, None))
        return made[0]

    return default
