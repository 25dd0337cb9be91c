"""What a handler gets and raises: `Job`, `Invalid` and `RetryLater`."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

from .errors import BellwetherError
from .values import Duration, duration_text

MAX_MESSAGE_BYTES = 1024
MAX_CHECKPOINT_BYTES = 16 * 1024


class Invalid(BellwetherError):
    """Raised by a handler: the job can never succeed, so it is dead without further attempts."""


class RetryLater(BellwetherError):
    """Raised by a handler: run the job again after this time, 1 s to 7 days. This is not a failure."""

    def __init__(self, after: Duration) -> None:
        super().__init__(after)
        self.after = duration_text(after)


class Stopped(BellwetherError):
    """The attempt must stop: the job was cancelled, or the attempt is over. Raised by `Job.check`."""


@dataclass(frozen=True)
class Progress:
    """Progress as last reported by an earlier attempt or by this one."""

    percent: int
    message: str = ""


Taken: TypeAlias = tuple[bool, "Progress | None", "bytes | None"]
"""Whether there was a sign of life, and the newest progress and checkpoint."""


class Sign:
    """What an attempt has reported since the last heartbeat. Written by a handler, read by the worker."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._alive = False
        self._progress: Progress | None = None
        self._checkpoint: bytes | None = None

    def report(self, progress: Progress | None = None, checkpoint: bytes | None = None) -> None:
        with self._lock:
            self._alive = True
            self._progress = progress or self._progress
            self._checkpoint = self._checkpoint if checkpoint is None else checkpoint

    def take(self) -> Taken:
        """Returns what was reported, once."""
        with self._lock:
            taken = self._alive, self._progress, self._checkpoint
            self._alive, self._progress, self._checkpoint = False, None, None
        return taken

    def put_back(self, taken: Taken) -> None:
        """Restores what a lost heartbeat carried, unless the handler has reported something newer."""
        with self._lock:
            self._alive = self._alive or taken[0]
            self._progress = self._progress or taken[1]
            self._checkpoint = taken[2] if self._checkpoint is None else self._checkpoint


@dataclass(frozen=True)
class JobFacts:
    """What is known about an attempt when it starts."""

    id: str
    kind: str
    generation: int
    attempt: int
    fencing_token: int
    priority: int = 5
    group: str | None = None
    number: int | None = None
    traceparent: str | None = None
    checkpoint: bytes | None = None
    progress: Progress | None = None
    submission: str | None = None
    """Tells the job from an earlier one with the same id."""


class Job:
    """One attempt of a job, for its handler. All methods are safe to call from any thread, and none waits.

    Reports are sent with the worker's next heartbeat, at the latest after a third of its timeout.
    """

    def __init__(self, facts: JobFacts, sign: Sign | None = None, on_report: Callable[[], None] | None = None) -> None:
        self._facts = facts
        self._sign = sign or Sign()
        self.on_report = on_report
        self._stop = threading.Event()
        self._reason: str | None = None

    @property
    def id(self) -> str:
        """The job's id: the key for idempotent side effects."""
        return self._facts.id

    @property
    def kind(self) -> str:
        return self._facts.kind

    @property
    def generation(self) -> int:
        """1, plus one for each time the job was opened again."""
        return self._facts.generation

    @property
    def attempt(self) -> int:
        """The number of this attempt in its generation."""
        return self._facts.attempt

    @property
    def fencing_token(self) -> int:
        """The fencing token: a later attempt has a higher one. Stores that reject lower tokens exclude late writes."""
        return self._facts.fencing_token

    @property
    def facts(self) -> JobFacts:
        """Priority, group, trace context, and the last checkpoint and progress."""
        return self._facts

    @property
    def last_checkpoint(self) -> bytes | None:
        """The checkpoint of the last attempt that stored one."""
        return self._facts.checkpoint

    @property
    def cancelled(self) -> bool:
        """Whether the attempt must stop, because the job was cancelled or the attempt is over."""
        return self._stop.is_set()

    @property
    def stop_reason(self) -> str | None:
        """Why it must stop: `cancelled`, `closed`, `handed_back` or `drain`."""
        return self._reason

    def check(self) -> None:
        """Raises `Stopped` if the attempt must stop. For handlers in threads and processes, which cannot be interrupted."""
        if self.cancelled:
            raise Stopped(self._reason or "stopped")

    def wait_stopped(self, timeout: float) -> bool:
        """Waits until the attempt must stop, at most this many seconds: a `time.sleep` that ends early."""
        return self._stop.wait(timeout)

    def progress(self, percent: int, message: str = "") -> None:
        """Reports progress, which also renews the lease."""
        if not 0 <= percent <= 100:
            raise ValueError(f"percent must be 0 to 100, not {percent}")
        if len(message.encode()) > MAX_MESSAGE_BYTES:
            raise ValueError(f"a progress message has at most {MAX_MESSAGE_BYTES} bytes")
        self._report(progress=Progress(int(percent), message))

    def checkpoint(self, data: bytes) -> None:
        """Stores data for the next attempt, which reads it as `last_checkpoint`. It also renews the lease."""
        if len(data) > MAX_CHECKPOINT_BYTES:
            raise ValueError(f"a checkpoint has at most {MAX_CHECKPOINT_BYTES} bytes, not {len(data)}")
        self._report(checkpoint=bytes(data))

    def renew_lease(self) -> None:
        """Gives a sign of life: the lease starts again with the next heartbeat."""
        self._report()

    def _report(self, progress: Progress | None = None, checkpoint: bytes | None = None) -> None:
        self._sign.report(progress, checkpoint)
        if self.on_report is not None:
            self.on_report()

    def relay(self, taken: Taken) -> None:
        """Called by the worker with the reports of a handler in another process."""
        self._report(taken[1], taken[2])

    def stop(self, reason: str) -> None:
        """Called by the worker. Only the first reason counts."""
        if not self._stop.is_set():
            self._reason = reason
            self._stop.set()

    @property
    def sign(self) -> Sign:
        """What the handler has reported. Read by the worker; useful in tests of handlers."""
        return self._sign


def make_job(id: str = "test", **facts: Any) -> Job:  # noqa: A002
    """Returns a `Job` for a unit test of a handler; `sign` of it has what the handler reports."""
    return Job(JobFacts(**{"kind": "test", "generation": 1, "attempt": 1, "fencing_token": 1, **facts, "id": id}))
