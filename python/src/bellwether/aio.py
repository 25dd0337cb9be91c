"""The async client. Its methods are those of `client.Bellwether`."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from datetime import datetime
from types import TracebackType
from typing import Any, TypeVar

import httpx

from . import calls
from .aio_handles import AsyncGroupHandle, AsyncJobHandle
from .aio_streams import AsyncEventStream
from .application import LIMITS, Application
from .batches import BatchRun
from .exchange import Call, Done, Exchange
from .model import (
    Changed,
    Explanation,
    GroupSummary,
    GroupView,
    JobView,
    Page,
    ScheduleView,
    State,
    Submitted,
)
from .options import IfExists, NewJob, Options
from .schedules import NewSchedule, ScheduleChange
from .values import Duration
from .waiting import Waiting, result_of

T = TypeVar("T")


class AsyncBellwether(Application):
    """A client of a namespace, and the declaration of its handlers. Belongs to one event loop."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._http: httpx.AsyncClient | None = None

    async def __aenter__(self) -> AsyncBellwether:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Closes the connections. The client opens new ones when it is used again."""
        http, self._http = self._http, None
        if http is not None:
            await http.aclose()

    def _client(self) -> httpx.AsyncClient:
        if self._http is None:
            self._http = httpx.AsyncClient(verify=self.verify, limits=LIMITS)
        return self._http

    async def send(self, call: Call[T], retry_for: float | None = None) -> T:
        """Sends a request, and repeats it as its `Repeat` allows."""
        http = self._client()
        exchange = Exchange(call, time.monotonic(), self._retry_for if retry_for is None else retry_for)
        while True:
            base = self.addresses.current
            try:
                response = await http.send(exchange.request(http, base, self.headers()))
            except httpx.TransportError as error:
                step: Done[T] | Any = exchange.failed(error, time.monotonic())
            else:
                step = exchange.received(response, time.monotonic())
            if isinstance(step, Done):
                value: T = step.value
                return value
            if step.move:
                self.addresses.move(base)
            await asyncio.sleep(step.seconds)

    # Jobs

    async def submit(
        self,
        kind: str | Callable[..., Any],
        /,
        *,
        id: str | None = None,  # noqa: A002
        named: str | None = None,
        payload: Any = None,
        content_type: str | None = None,
        options: Options | None = None,
        delay: Duration | None = None,
        run_at: datetime | str | None = None,
        expires_in: Duration | None = None,
        expires_at: datetime | str | None = None,
        if_exists: IfExists = "same",
        **fields: Any,
    ) -> AsyncJobHandle:
        """Submits a job; when it returns, the job is stored and is not lost.

        The payload is either `payload`, any JSON value, or the other keyword arguments as an object. With a `content_type`
        other than JSON, `payload` is a text. The id is drawn before the request is sent, so the request is repeated after a
        lost answer and is still one job. Only with `if_exists="again"` a lost answer raises `OutcomeUnknown`. With `named`
        instead of `id`, the id is KIND:NAME.
        """
        job = self.job(
            kind,
            id=id,
            named=named,
            payload=payload,
            content_type=content_type,
            options=options,
            delay=delay,
            run_at=run_at,
            expires_in=expires_in,
            expires_at=expires_at,
            if_exists=if_exists,
            **fields,
        )
        return await self.submit_job(job)

    async def submit_job(self, job: NewJob, traceparent: str | None = None) -> AsyncJobHandle:
        """Submits a job that was built with `job`. `traceparent` makes it part of a W3C trace."""
        return AsyncJobHandle(self, await self.send(calls.submit(job, traceparent)))

    async def submit_many(self, jobs: Sequence[NewJob]) -> list[AsyncJobHandle]:
        """Submits any number of jobs. Raises `BatchRefused` if some were not accepted; the others were."""
        return await self.run_batch(jobs, None)

    async def run_batch(self, jobs: Sequence[NewJob], group: tuple[str, int] | None) -> list[AsyncJobHandle]:
        """Submits jobs, as members of a group from a number on if one is given."""
        run: BatchRun[AsyncJobHandle] = BatchRun(jobs, group, time.monotonic() + self._retry_for)
        while (step := run.next()) is not None:
            chunk, call = step
            await asyncio.sleep(run.answered(chunk, await self.send(call), time.monotonic()))
        return run.finish(lambda submitted: AsyncJobHandle(self, submitted))

    def handle(self, job: str) -> AsyncJobHandle:
        """Returns the handle of a job that was submitted before, without a request."""
        return AsyncJobHandle(self, Submitted(job, "same", duplicate=True))

    async def get(self, job: str) -> JobView:
        return await self.send(calls.job(job))

    async def wait(self, job: str, timeout: Duration | None = None, *, generation: int = 1) -> JobView:
        """Waits until this generation of a job, or a later one, has ended. Raises `WaitTimeout` if it has not ended
        within the timeout."""
        waiting = Waiting(f"job {job}", timeout, time.monotonic())
        while True:
            slice_ = waiting.slice(time.monotonic())
            retry_for = waiting.retry_for(time.monotonic(), self._retry_for)
            view = await self.send(calls.wait_job(job, slice_, generation), retry_for)
            if view.ended and view.generation >= generation:
                return view

    async def result(self, job: str, timeout: Duration | None = None, *, generation: int = 1) -> Any:
        """Waits for the result of a job. Raises `JobDead` or `JobCancelled` if it has none."""
        return result_of(await self.wait(job, timeout, generation=generation))

    async def explain(self, job: str) -> Explanation:
        return await self.send(calls.explain(job))

    async def cancel(self, job: str) -> Changed:
        """Cancels a job. A waiting job ends immediately; a running one is asked to stop."""
        return await self.send(calls.cancel(job))

    async def retry(self, job: str) -> Changed:
        """Opens a dead or cancelled job again, as a new generation."""
        return await self.send(calls.retry(job))

    def jobs(
        self,
        *,
        state: State | None = None,
        kind: str | None = None,
        lane: str | None = None,
        group: str | None = None,
        submitted_after: datetime | str | None = None,
        submitted_before: datetime | str | None = None,
        finished_after: datetime | str | None = None,
        finished_before: datetime | str | None = None,
        payloads: bool = False,
        page_size: int = 100,
    ) -> AsyncIterator[JobView]:
        """Iterates over jobs, in no particular order, and requests pages as needed.

        The instants select jobs that were submitted, or have ended, at or after `…_after` and before `…_before`; a
        `datetime` must have a time zone. `payload` and `result` are `None` unless `payloads` is true.
        """
        query = calls.jobs_query(
            state=state,
            kind=kind,
            lane=lane,
            group=group,
            submitted_after=submitted_after,
            submitted_before=submitted_before,
            finished_after=finished_after,
            finished_before=finished_before,
            payloads=payloads,
        )
        return self._pages(lambda after: calls.list_jobs(query, page_size, after))

    async def _pages(self, page: Callable[[str | None], Call[Page[T]]]) -> AsyncIterator[T]:
        after: str | None = None
        while True:
            found = await self.send(page(after))
            for item in found.items:
                yield item
            after = found.next
            if after is None:
                return

    def events(self, *, job: str | None = None, kind: str | None = None) -> AsyncEventStream:
        """Follows jobs: a context manager and an iterator of events. It reconnects when the connection is lost."""
        return AsyncEventStream(self, calls.events_query(job, kind), self._retry_for)

    # Groups

    async def group(
        self,
        kind: str,
        id: str,  # noqa: A002
        *,
        total: int | None = None,
        fail_fast: bool = False,
        join: bool = True,
    ) -> AsyncGroupHandle:
        """Creates a group, or returns the handle of the same group if it exists."""
        view = await self.send(calls.create_group(kind, id, total, fail_fast=fail_fast, join=join))
        return AsyncGroupHandle(self, view, fail_fast=fail_fast, join=join)

    async def get_group(self, group: str) -> GroupView:
        return await self.send(calls.group(group))

    async def wait_group(self, group: str, timeout: Duration | None = None) -> GroupView:
        """Waits until the members and the join of a group have ended."""
        waiting = Waiting(f"group {group}", timeout, time.monotonic())
        while True:
            slice_ = waiting.slice(time.monotonic())
            retry_for = waiting.retry_for(time.monotonic(), self._retry_for)
            view = await self.send(calls.wait_group(group, slice_), retry_for)
            if view.done:
                return view

    async def abandon_group(self, group: str) -> GroupView:
        """Closes a group whose client is gone: no more members, and no join. Its members run on."""
        return await self.send(calls.abandon_group(group))

    async def groups(self, *, stage: str | None = None, page_size: int = 100) -> AsyncIterator[GroupSummary]:
        async for group in self._pages(lambda after: calls.list_groups(stage, page_size, after)):
            yield group

    # Schedules

    async def add_schedule(self, schedule: NewSchedule) -> ScheduleView:
        return await self.send(calls.add_schedule(schedule.document()))

    async def schedules(self, *, page_size: int = 100) -> AsyncIterator[ScheduleView]:
        """Iterates over the schedules by id, without their payloads, and requests pages as needed."""
        async for schedule in self._pages(lambda after: calls.list_schedules(page_size, after)):
            yield schedule

    async def get_schedule(self, schedule: str) -> ScheduleView:
        return await self.send(calls.schedule(schedule))

    async def change_schedule(self, schedule: str, change: ScheduleChange) -> ScheduleView:
        """Changes when a schedule ticks. The first tick by the new rule is the first one after now."""
        return await self.send(calls.change_schedule(schedule, change.document()))

    async def pause_schedule(self, schedule: str) -> ScheduleView:
        return await self.send(calls.pause_schedule(schedule))

    async def resume_schedule(self, schedule: str) -> ScheduleView:
        return await self.send(calls.resume_schedule(schedule))

    async def trigger_schedule(self, schedule: str) -> AsyncJobHandle:
        """Submits the job of a schedule now. After `OutcomeUnknown`, `problem.job` may name the job to look for."""
        return AsyncJobHandle(self, await self.send(calls.trigger_schedule(schedule)))

    async def remove_schedule(self, schedule: str) -> None:
        await self.send(calls.remove_schedule(schedule))

    # Operations

    async def pause_kind(self, kind: str, note: str | None = None) -> str:
        """Stops the assignment of a kind's jobs until `resume_kind`. `note` is the reason, for other operators."""
        return await self.send(calls.pause_kind(kind, note))

    async def resume_kind(self, kind: str) -> str:
        return await self.send(calls.resume_kind(kind))

    async def request(self, path: str, query: Mapping[str, str] | None = None) -> Any:
        """Returns the document of any other GET request, such as `/v1/workers` or `/v1/cluster`."""
        return await self.send(calls.get(path, query or {}))
