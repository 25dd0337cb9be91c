"""Handles of submitted jobs and of groups, for the async client."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from .model import Changed, Explanation, GroupView, JobView, Submitted
from .options import NewJob
from .values import Duration
from .waiting import join_of, result_of

if TYPE_CHECKING:
    from .aio import AsyncBellwether


class AsyncJobHandle:
    """A submitted job."""

    def __init__(self, client: AsyncBellwether, submitted: Submitted) -> None:
        self._client = client
        self.submitted = submitted

    def __repr__(self) -> str:
        return f"AsyncJobHandle({self.id!r}, accepted={self.submitted.accepted!r})"

    @property
    def id(self) -> str:
        return self.submitted.id

    async def result(self, timeout: Duration | None = None) -> Any:
        """Waits for the result. Raises `JobDead`, `JobCancelled` or `WaitTimeout`."""
        return await self._client.result(self.id, timeout, generation=self.submitted.generation)

    async def wait(self, timeout: Duration | None = None) -> JobView:
        """Waits until the job has ended."""
        return await self._client.wait(self.id, timeout, generation=self.submitted.generation)

    async def show(self) -> JobView:
        return await self._client.get(self.id)

    async def explain(self) -> Explanation:
        return await self._client.explain(self.id)

    async def cancel(self) -> Changed:
        return await self._client.cancel(self.id)

    async def retry(self) -> Changed:
        return await self._client.retry(self.id)


class AsyncGroupHandle:
    """A group that was created or found."""

    def __init__(self, client: AsyncBellwether, view: GroupView, *, fail_fast: bool, join: bool) -> None:
        self._client = client
        self._fail_fast = fail_fast
        self._join = join
        self.created = view

    def __repr__(self) -> str:
        return f"AsyncGroupHandle({self.id!r})"

    @property
    def id(self) -> str:
        return self.created.id

    async def submit_many(self, jobs: Sequence[NewJob], first: int = 0) -> list[AsyncJobHandle]:
        """Submits members with the numbers `first`, `first + 1`, … A repetition with the same numbers is safe."""
        return await self._client.run_batch(jobs, (self.id, first))

    async def seal(self, total: int) -> GroupView:
        """Sets the number of members, which cannot be changed later."""
        kind, fail_fast, join = self.created.kind, self._fail_fast, self._join
        made = await self._client.group(kind, self.id, total=total, fail_fast=fail_fast, join=join)
        return made.created

    async def show(self) -> GroupView:
        return await self._client.get_group(self.id)

    async def wait(self, timeout: Duration | None = None) -> GroupView:
        """Waits until the members and the join have ended."""
        return await self._client.wait_group(self.id, timeout)

    async def join_result(self, timeout: Duration | None = None) -> Any:
        """Waits until the group has ended, and returns the result of its join. Raises `JobDead` or `JobCancelled`."""
        return result_of(await self._client.get(join_of(await self.wait(timeout))))

    async def abandon(self) -> GroupView:
        return await self._client.abandon_group(self.id)
