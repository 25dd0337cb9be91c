"""Submitting many jobs, in requests within the gateway's bounds, until each job has an outcome."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

from . import calls
from .errors import (
    ApiError,
    BellwetherError,
    OutcomeUnknown,
    Problem,
    Unavailable,
    UnexpectedAnswer,
    error_of,
)
from .exchange import FIRST_PAUSE, LONGEST_PAUSE, Call
from .model import Submitted
from .options import NewJob, encode

H = TypeVar("H")


class BatchRefused(BellwetherError):
    """Some jobs of a batch were not accepted. `errors` maps their positions in the batch to the reasons."""

    def __init__(self, errors: dict[int, ApiError], jobs: int) -> None:
        position, first = next(iter(errors.items()))
        super().__init__(f"{len(errors)} of {jobs} jobs were not accepted; jobs[{position}]: {first}")
        self.errors = errors


def _check(at: int, job: object) -> None:
    """Raises `TypeError` if an item of a batch is not a `NewJob`: type hints are not checked at run time."""
    if not isinstance(job, NewJob):
        kind = type(job).__name__
        raise TypeError(f"jobs[{at}] is a {kind}: build each job of a batch with app.job(kind, ...)")


def _chunks(jobs: Sequence[NewJob]) -> list[range]:
    """Splits jobs into ranges that fit into one request each."""
    found: list[range] = []
    start = size = 0
    for at, job in enumerate(jobs):
        bytes_ = len(encode(job.document())) + 1
        full = at - start == calls.MAX_BATCH or size + bytes_ > calls.MAX_BATCH_BYTES - 64
        if full and at > start:
            found.append(range(start, at))
            start, size = at, 0
        size += bytes_
    if start < len(jobs):
        found.append(range(start, len(jobs)))
    return found


class BatchRun(Generic[H]):
    """The progress of a batch: which request is next, and what each job's outcome is.

    A job whose outcome is unknown or that the gateway could not take at the moment is sent again. Its id or its number was
    chosen before, so this is the same job.
    """

    def __init__(self, jobs: Sequence[NewJob], group: tuple[str, int] | None, deadline: float) -> None:
        for at, job in enumerate(jobs):
            _check(at, job)
        self._jobs = jobs
        self._group = group
        self._deadline = deadline
        self._outcomes: list[Submitted | Problem | None] = [None] * len(jobs)
        self._todo = _chunks(jobs)
        self._again: list[int] = []
        self._rounds = 0

    def next(self) -> tuple[range, Call[calls.BatchAnswer]] | None:
        """Returns the next request and its jobs."""
        if not self._todo:
            return None
        chunk = self._todo[0]
        jobs = self._jobs[chunk.start : chunk.stop]
        if self._group is None:
            return chunk, calls.batch(jobs)
        name, first = self._group
        return chunk, calls.members(name, first + chunk.start, jobs)

    def answered(self, chunk: range, answer: calls.BatchAnswer, now: float) -> float:
        """Stores the outcomes, and returns the pause before the next request."""
        if len(answer) != len(chunk):
            raise UnexpectedAnswer(f"{len(answer)} outcomes for {len(chunk)} jobs")
        self._todo.pop(0)
        for at, outcome in zip(chunk, answer, strict=True):
            self._outcomes[at] = outcome
            if isinstance(outcome, Problem) and self._repairable(at, outcome) and now < self._deadline:
                self._again.append(at)
        if self._todo or not self._again:
            return 0.0
        self._todo, self._again = [range(at, at + 1) for at in self._again], []
        self._rounds += 1
        return min(LONGEST_PAUSE, FIRST_PAUSE * 2.0 ** min(self._rounds, 16))

    def _repairable(self, at: int, problem: Problem) -> bool:
        error = error_of(problem)
        if isinstance(error, Unavailable):
            return True
        return isinstance(error, OutcomeUnknown) and self._jobs[at].if_exists != "again"

    def finish(self, handle: Callable[[Submitted], H]) -> list[H]:
        """Returns the handles of all jobs, or raises `BatchRefused`."""
        found: list[H] = []
        errors: dict[int, ApiError] = {}
        for at, outcome in enumerate(self._outcomes):
            if isinstance(outcome, Submitted):
                found.append(handle(outcome))
            elif isinstance(outcome, Problem):
                errors[at] = error_of(outcome)
        if errors:
            raise BatchRefused(errors, len(self._jobs))
        return found
