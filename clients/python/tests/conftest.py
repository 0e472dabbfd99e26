"""What tests share. CLAIMQ_BIN and CLAIMQ_FAULTS name the binaries that the Go test built."""

from __future__ import annotations

import os

import pytest

pytest_plugins = ["claimq.pytest_plugin", "pytester"]


@pytest.fixture
def faults() -> str:
    """The server of clients/faults."""
    return os.environ["CLAIMQ_FAULTS"]
