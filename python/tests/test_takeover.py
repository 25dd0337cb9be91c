"""A worker whose gateway dies goes on at another one: nothing is lost, and nothing runs twice."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import httpx
from eventually import eventually
from programs import notes, serves, worker_process

from bellwether import Bellwether, JobHandle
from bellwether.testing import DevServer, free_port


class Gateway:
    """A gateway in a process of its own."""

    def __init__(self, command: str, zookeeper: str) -> None:
        port = free_port()
        self.url = f"http://127.0.0.1:{port}"
        arguments = ["--zookeeper", zookeeper, "node", "--roles", "gateway", "--http-listen", f"127.0.0.1:{port}"]
        self.process = subprocess.Popen([command, *arguments])

    def is_ready(self) -> bool:
        try:
            return httpx.get(f"{self.url}/readyz", timeout=2.0).status_code == 200
        except httpx.TransportError:
            return False

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()


@contextmanager
def gateways(command: str, server: DevServer, count: int) -> Iterator[list[Gateway]]:
    found = [Gateway(command, server.zookeeper) for _ in range(count)]
    try:
        eventually(lambda: all(gateway.is_ready() for gateway in found))
        yield found
    finally:
        for gateway in found:
            gateway.kill()


def workers_of(jobs: Sequence[JobHandle]) -> set[str | None]:
    return {job.show().worker for job in jobs}


def all_moved(jobs: Sequence[JobHandle], before: set[str | None]) -> bool:
    return not before & workers_of(jobs)


def test_a_job_goes_on_at_each_further_gateway(command: str, own_server: DevServer, tmp_path: Path) -> None:
    log, release = tmp_path / "log", tmp_path / "release"
    with Bellwether(own_server.url) as app, gateways(command, own_server, 3) as all_gateways:
        urls = [argument for gateway in all_gateways[1:] for argument in ("--url", gateway.url)]
        with worker_process(all_gateways[0].url, "mover", *urls):
            serves(app, "py-hold")
            jobs = [app.submit("py-hold", log=str(log), release=str(release)) for _ in range(3)]
            eventually(lambda: len(notes(log)) == 3)
            for gateway in all_gateways[:2]:
                before = workers_of(jobs)
                gateway.kill()
                eventually(partial(all_moved, jobs, before), within=30)
            release.touch()
            assert [job.result(timeout=60) for job in jobs] == [1, 1, 1]
        views = [job.show() for job in jobs]
    for view in views:
        assert (view.state, view.attempt, view.losses, view.failures) == ("succeeded", 1, 0, 0)
    assert len(notes(log)) == 3, "each job ran once"


def test_a_result_that_the_dead_gateway_did_not_take_is_given_to_the_next_one(
    command: str, own_server: DevServer, tmp_path: Path
) -> None:
    log, release = tmp_path / "log", tmp_path / "release"
    with Bellwether(own_server.url) as app, gateways(command, own_server, 2) as (first, second):
        with worker_process(first.url, "mover", "--url", second.url):
            serves(app, "py-hold")
            job = app.submit("py-hold", log=str(log), release=str(release))
            eventually(lambda: notes(log))
            first.kill()
            release.touch()
            assert job.result(timeout=60) == 1
        view = job.show()
    assert (view.state, view.attempt, view.losses) == ("succeeded", 1, 0)
    assert len(notes(log)) == len(notes(log, "end")) == 1
