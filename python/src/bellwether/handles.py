"""Handles of submitted jobs and of groups, for the sync client."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from .model import Changed, Explanation, GroupView, JobView, Submitted
from .options import NewJob
from .values import Duration
from .waiting import join_of, result_of

if TYPE_CHECKING:
    from .client import Bellwether


class JobHandle:
    """A submitted job."""

    def __init__(self, client: Bellwether, submitted: Submitted) -> None:
        self._client = client
        self.submitted = submitted

    def __repr__(self) -> str:
        return f"JobHandle({self.id!r}, accepted={self.submitted.accepted!r})"

    @property
    def id(self) -> str:
        return self.submitted.id

    def result(self, timeout: Duration | None = None) -> Any:
        """Waits for the result. Raises `JobDead`, `JobCancelled` or `WaitTimeout`."""
        return self._client.result(self.id, timeout, generation=self.submitted.generation)

    def wait(self, timeout: Duration | None = None) -> JobView:
        """Waits until the job has ended."""
        return self._client.wait(self.id, timeout, generation=self.submitted.generation)

    def show(self) -> JobView:
        return self._client.get(self.id)

    def explain(self) -> Explanation:
        return self._client.explain(self.id)

    def cancel(self) -> Changed:
        return self._client.cancel(self.id)

    def retry(self) -> Changed:
        return self._client.retry(self.id)


class GroupHandle:
    """A group that was created or found."""

    def __init__(self, client: Bellwether, view: GroupView, *, fail_fast: bool, join: bool) -> None:
        self._client = client
        self._fail_fast = fail_fast
        self._join = join
        self.created = view

    def __repr__(self) -> str:
        return f"GroupHandle({self.id!r})"

    @property
    def id(self) -> str:
        return self.created.id

    def submit_many(self, jobs: Sequence[NewJob], first: int = 0) -> list[JobHandle]:
        """Submits members with the numbers `first`, `first + 1`, … A repetition with the same numbers is safe."""
        return self._client.run_batch(jobs, (self.id, first))

    def seal(self, total: int) -> GroupView:
        """Sets the number of members, which cannot be changed later."""
        kind, fail_fast, join = self.created.kind, self._fail_fast, self._join
        return self._client.group(kind, self.id, total=total, fail_fast=fail_fast, join=join).created

    def show(self) -> GroupView:
        return self._client.get_group(self.id)

    def wait(self, timeout: Duration | None = None) -> GroupView:
        """Waits until the members and the join have ended."""
        return self._client.wait_group(self.id, timeout)

    def join_result(self, timeout: Duration | None = None) -> Any:
        """Waits until the group has ended, and returns the result of its join. Raises `JobDead` or `JobCancelled`."""
        return result_of(self._client.get(join_of(self.wait(timeout))))

    def abandon(self) -> GroupView:
        return self._client.abandon_group(self.id)
