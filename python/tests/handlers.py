"""The application of worker processes in tests: `python -m bellwether worker handlers:app`.

Each run leaves a line in a file, so a test can count runs across processes.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

from bellwether import Bellwether, Invalid, Job, RetryLater

app = Bellwether()


def note(path: str, job: Job, what: str) -> None:
    with Path(path).open("a") as file:
        file.write(f"{job.id} {job.attempt} {job.fencing_token} {os.getpid()} {what}\n")


@app.kind("py-note")
def take_note(log: str, job: Job) -> int:
    note(log, job, "run")
    return job.attempt


@app.kind("py-hold")
def hold(log: str, release: str, job: Job) -> int:
    """Runs until a file exists."""
    note(log, job, "run")
    while not Path(release).exists() and not job.wait_stopped(0.02):
        pass
    job.check()
    note(log, job, "end")
    return job.attempt


@app.kind("py-busy", process=True)
def busy(numbers: int, job: Job) -> list[int]:
    """CPU-bound work in a process of the pool."""
    job.progress(50, "half")
    return [sum(range(numbers)), os.getpid()]


@app.kind("py-endless", process=True)
def endless() -> None:
    """Ignores the stop signal."""
    while True:
        time.sleep(0.01)


@app.kind("py-dies", process=True)
def dies() -> None:
    os._exit(7)


@app.kind("py-strange", process=True)
def strange() -> Any:
    return lambda: None


class OwnError(Exception):
    """Cannot be unpickled: its constructor needs two arguments."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(f"{code} {text}")


def raises(name: str) -> None:
    """Not a kind of `app`: tests declare it themselves."""
    errors: dict[str, BaseException] = {
        "fails": ValueError("broken"),
        "own": OwnError(5, "own"),
        "exits": SystemExit(3),
        "invalid": Invalid("no address"),
        "later": RetryLater("5m"),
    }
    raise errors[name]


def where(payload: Any) -> int:
    return os.getpid()


async def where_async(payload: Any) -> int:
    return os.getpid()
