"""The worker on a real gateway."""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path

import pytest
from eventually import eventually
from programs import notes, serves, worker_process

from bellwether import AsyncBellwether, Backoff, Bellwether, Invalid, Job, JobCancelled, JobDead, Options, RetryLater
from bellwether.testing import DevServer, running_worker
from bellwether.values import new_id


def test_the_example_of_the_readme_runs(app: Bellwether) -> None:
    @app.kind("mail", max_attempts=6, timeout=30)
    def mail(to: str, subject: str, job: Job) -> dict[str, str]:
        job.progress(50, "sending")
        return {"sent": to}

    with running_worker(app):
        job = app.submit("mail", to="a@example.org", subject="hi", id=new_id())
        assert job.result(timeout=30) == {"sent": "a@example.org"}


def test_outcomes_reach_the_job(app: Bellwether) -> None:
    kind = f"outcomes-{new_id()}"

    @app.kind(kind, options=Options(max_attempts=2, backoff=Backoff(initial=0.01, max=0.01)))
    def outcomes(case: str, job: Job) -> int:
        if case == "later" and job.attempt == 1:
            raise RetryLater(1)
        if case == "once" and job.attempt == 1:
            raise ValueError("not yet")
        if case == "always":
            raise ValueError("never")
        if case == "invalid":
            raise Invalid("no such address")
        return job.attempt

    with running_worker(app):
        jobs = {case: app.submit(kind, case=case) for case in ("good", "later", "once", "always", "invalid")}
        assert jobs["good"].result(30) == 1
        assert jobs["later"].result(30) == 2
        assert jobs["once"].result(30) == 2
        assert (jobs["later"].show().failures, jobs["once"].show().failures) == (0, 1)
        with pytest.raises(JobDead, match="ValueError: never"):
            jobs["always"].result(30)
        with pytest.raises(JobDead, match="no such address"):
            jobs["invalid"].result(30)
        assert jobs["invalid"].show().attempt == 1


def test_a_cancel_stops_a_running_job(app: Bellwether) -> None:
    kind = f"cancel-{new_id()}"
    stopped: list[str] = []

    @app.kind(kind)
    async def endless(job: Job) -> None:
        try:
            await asyncio.sleep(600)
        finally:
            stopped.append(job.id)

    with running_worker(app):
        job = app.submit(kind)
        eventually(lambda: job.show().state == "running" and job.show().worker)
        job.cancel()
        with pytest.raises(JobCancelled):
            job.result(timeout=30)
        eventually(lambda: stopped == [job.id])


def test_progress_is_visible_while_the_job_runs(app: Bellwether, tmp_path: Path) -> None:
    kind = f"progress-{new_id()}"
    release = tmp_path / "release"

    @app.kind(kind)
    def reports(job: Job) -> None:
        job.progress(40, "half")
        while not release.exists() and not job.wait_stopped(0.02):
            pass

    with running_worker(app):
        job = app.submit(kind)
        eventually(lambda: job.show().percent == 40 and job.show().message == "half")
        release.touch()
        job.result(timeout=30)


def test_an_async_application_serves_on_its_loop(server: DevServer) -> None:
    async def body() -> None:
        async with AsyncBellwether(server.url) as app:
            kind = f"loop-{new_id()}"
            loop = asyncio.get_running_loop()

            @app.kind(kind)
            async def same_loop(n: int) -> bool:
                assert n == 1
                return asyncio.get_running_loop() is loop

            worker = asyncio.create_task(app.serve(slots=2, drain_grace=5))
            job = await app.submit(kind, n=1)
            assert await job.result(timeout=30) is True
            worker.cancel()
            with pytest.raises(asyncio.CancelledError):
                await worker

    asyncio.run(body())


def test_sigterm_lets_running_jobs_end(own_server: DevServer, tmp_path: Path) -> None:
    log, release = tmp_path / "log", tmp_path / "release"
    # On the shared server the job may first get a worker that an earlier test has killed.
    with Bellwether(own_server.url) as app, worker_process(own_server.url, "drains") as process:
        job = app.submit("py-hold", log=str(log), release=str(release))
        eventually(lambda: notes(log))
        process.send_signal(signal.SIGTERM)
        eventually(lambda: all(one["node"] != "drains" or one["draining"] for one in app.request("/v1/workers")))
        assert process.poll() is None
        release.touch()
        assert job.result(timeout=30) == 1
        assert process.wait(20) == 0
    assert len(notes(log)) == 1


def test_a_job_that_outlives_the_grace_is_handed_back(server: DevServer, app: Bellwether, tmp_path: Path) -> None:
    log, release = tmp_path / "log", tmp_path / "release"
    with worker_process(server.url, "impatient", "--drain-grace", "500ms") as process:
        job = app.submit("py-hold", log=str(log), release=str(release))
        eventually(lambda: notes(log))
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 0
    release.touch()
    with worker_process(server.url, "next"):
        job.result(timeout=30)
    view = job.show()
    assert (view.failures, view.losses) == (0, 0)
    assert len(notes(log)) == 2


def test_a_second_signal_ends_the_worker_immediately(server: DevServer, app: Bellwether, tmp_path: Path) -> None:
    log, release = tmp_path / "log", tmp_path / "release"
    with worker_process(server.url, "stubborn", "--session-timeout", "3s") as process:
        job = app.submit("py-hold", log=str(log), release=str(release))
        eventually(lambda: notes(log))
        process.send_signal(signal.SIGTERM)
        eventually(lambda: all(one["node"] != "stubborn" or one["draining"] for one in app.request("/v1/workers")))
        process.send_signal(signal.SIGTERM)
        assert process.wait(10) == 128 + signal.SIGTERM
    release.touch()
    with worker_process(server.url, "next"):
        job.result(timeout=60)


def test_cpu_bound_handlers_run_in_processes(server: DevServer, app: Bellwether) -> None:
    with worker_process(server.url, "pool", "--slots", "4") as worker:
        serves(app, "py-busy")
        results = [app.submit("py-busy", numbers=1000).result(timeout=60) for _ in range(3)]
        assert {result[0] for result in results} == {499500}
        assert worker.pid not in {result[1] for result in results}
        once = Options(max_attempts=1)
        with pytest.raises(JobDead, match="ended with code 7"):
            app.submit("py-dies", options=once).result(timeout=60)
        with pytest.raises(JobDead, match="cannot be sent"):
            app.submit("py-strange", options=once).result(timeout=60)
        endless = app.submit("py-endless", options=Options(max_attempts=1, timeout=1))
        with pytest.raises(JobDead):
            endless.result(timeout=60)
        assert app.submit("py-busy", numbers=10).result(timeout=60)[0] == 45
