"""Fixtures: a real gateway (the binary's `dev` server), and clients of it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from bellwether import Bellwether
from bellwether.testing import COMMAND, DevServer, dev_server

DEFAULT_COMMAND = Path(__file__).parents[2] / "target" / "debug" / "bellwether"


@pytest.fixture(scope="session")
def command() -> str:
    """The binary under test."""
    return os.environ.get(COMMAND) or str(DEFAULT_COMMAND)


@pytest.fixture(scope="session")
def server(command: str) -> Iterator[DevServer]:
    """One server for all tests that do not break it."""
    with dev_server(command) as server:
        yield server


@pytest.fixture
def app(server: DevServer) -> Iterator[Bellwether]:
    with Bellwether(server.url) as app:
        yield app


@pytest.fixture
def own_server(command: str) -> Iterator[DevServer]:
    """A leader and a server of its own: its workers are only those of the test."""
    with dev_server(command) as server:
        yield server
