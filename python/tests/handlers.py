"""The application of worker processes in tests: `python -m bellwether worker handlers:app`.

Each run leaves a line in a file, so a test can count runs across processes.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

from bellwether import Bellwether, Job

app = Bellwether()


def note(path: str, job: Job, what: str) -> None:
    with Path(path).open("a") as file:
        file.write(f"{job.id} {job.attempt} {job.token} {os.getpid()} {what}\n")


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
