"""Worker processes of tests, and what their handlers have noted."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from eventually import eventually

from bellwether import Bellwether


@dataclass(frozen=True)
class Note:
    job: str
    attempt: int
    token: int
    pid: int
    what: str


def notes(path: Path, what: str = "run") -> list[Note]:
    """Returns the notes of the handlers in `handlers.py`."""
    if not path.exists():
        return []
    found = [line.split() for line in path.read_text().splitlines()]
    return [Note(line[0], int(line[1]), int(line[2]), int(line[3]), line[4]) for line in found if line[4] == what]


@contextmanager
def worker_process(url: str, name: str, *arguments: str) -> Iterator[subprocess.Popen[bytes]]:
    """Runs `python -m bellwether worker` until the end of the block."""
    command = [
        sys.executable,
        "-m",
        "bellwether",
        "worker",
        "handlers:app",
        "--url",
        url,
        "--node-id",
        name,
        *arguments,
    ]
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    process = subprocess.Popen(command, cwd=Path(__file__).parent, env=environment)
    try:
        yield process
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
                raise


def serves(app: Bellwether, kind: str, workers: int = 1) -> None:
    """Waits until this many workers serve a kind."""

    def served() -> bool:
        return any(one["kind"] == kind and len(one["workers"]) == workers for one in app.request("/v1/kinds"))

    eventually(served)
