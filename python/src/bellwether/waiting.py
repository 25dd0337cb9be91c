"""Waiting for the end of a job or a group, in requests of limited length."""

from __future__ import annotations

from typing import Any

from .calls import WAIT_SLICE
from .errors import InvalidInput, JobCancelled, JobDead, WaitTimeout
from .model import GroupView, JobView
from .values import Duration, seconds_of


class Waiting:
    """A wait with an optional deadline."""

    def __init__(self, subject: str, timeout: Duration | None, now: float) -> None:
        self._subject = subject
        self._deadline = None if timeout is None else now + seconds_of(timeout)
        self._asked = False

    def slice(self, now: float) -> float:
        """Returns the length of the next request. Raises `WaitTimeout` once the deadline has passed."""
        if self._deadline is None:
            return WAIT_SLICE
        left = self._deadline - now
        if left <= 0 and self._asked:
            raise WaitTimeout(f"{self._subject} has not ended within the timeout")
        self._asked = True
        return min(WAIT_SLICE, max(left, 0.001))

    def retry_for(self, now: float, otherwise: float) -> float:
        """Returns how long a request may be repeated: until the deadline, if there is one."""
        return otherwise if self._deadline is None else max(self._deadline - now, 0.0)


def result_of(job: JobView) -> Any:
    """Returns the result of a job that has ended, or raises the reason why it has none."""
    if job.state == "succeeded":
        return job.result
    raise JobCancelled(job) if job.state == "cancelled" else JobDead(job)


def join_of(group: GroupView) -> str:
    """Returns the id of the join of a group that has ended. Raises `InvalidInput` if the group was created without one."""
    if group.join is None:
        raise InvalidInput(f"group {group.id} has no join")
    return group.join
