"""The async client on a real gateway."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from datetime import datetime
from typing import Any

import pytest

from bellwether import (
    AsyncBellwether,
    InvalidInput,
    JobCancelled,
    JobChanged,
    NewSchedule,
    Options,
    ScheduleChange,
    WaitTimeout,
)
from bellwether.testing import DevServer
from bellwether.values import new_id


def on_gateway(server: DevServer, body: Callable[[AsyncBellwether], Coroutine[Any, Any, None]]) -> None:
    async def run() -> None:
        async with AsyncBellwether(server.url) as app:
            await body(app)

    asyncio.run(run())


def test_jobs_are_submitted_and_awaited(server: DevServer) -> None:
    async def body(app: AsyncBellwether) -> None:
        job = await app.submit("sum", payload=[1, 2, 3])
        assert await job.result(timeout=30) == 6
        many = await app.submit_many([app.job("sum", payload=[n]) for n in range(20)])
        assert await asyncio.gather(*(one.result(30) for one in many)) == list(range(20))
        assert (await job.show()).state == "succeeded"

    on_gateway(server, body)


def test_jobs_are_cancelled_retried_and_explained(server: DevServer) -> None:
    async def body(app: AsyncBellwether) -> None:
        job = await app.submit("sum", payload=[4], delay="1h")
        with pytest.raises(WaitTimeout):
            await job.wait(timeout=0.2)
        assert (await job.explain()).state == "delayed"
        await job.cancel()
        with pytest.raises(JobCancelled):
            await job.result(timeout=30)
        await job.retry()
        assert await job.result(timeout=30) == 4

    on_gateway(server, body)


def test_groups_and_schedules_have_the_same_methods(server: DevServer) -> None:
    async def body(app: AsyncBellwether) -> None:
        group = await app.group("sum", new_id(), join=False)
        await group.submit_many([app.job("sum", payload=[n]) for n in range(3)])
        await group.seal(3)
        assert (await group.wait(timeout=30)).succeeded == 3
        assert len([job async for job in app.jobs(group=group.id, page_size=2)]) == 3
        assert group.id in [found.id async for found in app.groups()]
        spec = NewSchedule(id=f"s-{new_id()}", job=app.job("sum", payload=[5]), every="1h")
        await app.add_schedule(spec)
        assert await (await app.trigger_schedule(spec.id)).result(timeout=30) == 5
        changed = await app.change_schedule(spec.id, ScheduleChange(every="2h", misfire="skip"))
        assert (changed.document["every"], changed.document["misfire"]) == ("2h", "skip")
        assert spec.id in [found.id async for found in app.schedules(page_size=1)]
        await app.remove_schedule(spec.id)

    on_gateway(server, body)


def test_jobs_are_selected_by_the_times_of_their_submission_and_end(server: DevServer) -> None:
    async def body(app: AsyncBellwether) -> None:
        options = Options(lane=new_id())
        first = await (await app.submit("sum", payload=[1], options=options)).wait(timeout=30)
        second = await (await app.submit("sum", payload=[2], options=options)).wait(timeout=30)
        before = app.jobs(lane=options.lane, submitted_before=second.submitted_at, finished_before=second.finished_at)
        assert [job.id async for job in before] == [first.id]
        later = app.jobs(lane=options.lane, submitted_after=second.submitted_at, finished_after=second.finished_at)
        assert [job.id async for job in later] == [second.id]
        with pytest.raises(InvalidInput, match="no time zone"):
            app.jobs(submitted_before=datetime(2026, 11, 21, 12, 0, 0))

    on_gateway(server, body)


def test_a_join_runs_after_the_members_on_the_event_loop(server: DevServer) -> None:
    async def body(app: AsyncBellwether) -> None:
        kind = f"part-{new_id()}"

        @app.kind(kind)
        async def part(n: int) -> int:
            return n * n

        @app.kind(f"{kind}.join")
        async def total(group: str, **_rest: Any) -> int:
            return sum([member.result async for member in app.jobs(group=group, kind=kind, payloads=True)])

        group = await app.group(kind, new_id(), total=4)
        worker = asyncio.create_task(app.serve(slots=4, drain_grace=5))
        await group.submit_many([app.job(kind, n=n) for n in range(4)])
        assert await group.join_result(timeout=30) == 0 + 1 + 4 + 9
        assert [job.result async for job in app.jobs(group=group.id)] == [None] * 5
        worker.cancel()
        with pytest.raises(asyncio.CancelledError):
            await worker

    on_gateway(server, body)


def test_events_show_a_job_until_its_end(server: DevServer) -> None:
    async def body(app: AsyncBellwether) -> None:
        id_ = new_id()
        async with app.events(job=id_) as events:
            await app.submit("sum", id=id_, payload=[1])
            async for event in events:
                assert isinstance(event, JobChanged)
                if event.state == "succeeded":
                    return

    on_gateway(server, body)


def test_a_cancelled_wait_leaves_the_client_usable(server: DevServer) -> None:
    async def body(app: AsyncBellwether) -> None:
        job = await app.submit("sum", payload=[1], delay="1h")
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(job.wait(), 0.2)
        assert (await job.show()).state == "delayed"

    on_gateway(server, body)
