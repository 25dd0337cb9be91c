"""Two gateways of one namespace: one of them dies."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from eventually import eventually
from gateways import Gateway, gateway
from programs import notes, serves, worker_process

from bellwether import Bellwether, EventsMissed, JobChanged
from bellwether.testing import DevServer
from bellwether.values import new_id


@pytest.fixture
def two(command: str, server: DevServer) -> Iterator[tuple[Gateway, Gateway]]:
    with gateway(command, server) as first, gateway(command, server) as second:
        yield first, second


def test_a_client_goes_on_at_the_other_gateway(two: tuple[Gateway, Gateway]) -> None:
    first, second = two
    with Bellwether([first.url, second.url]) as app, ThreadPoolExecutor() as threads:
        assert app.submit("sum", payload=[1, 2]).result(timeout=30) == 3
        later = app.submit("sum", payload=[2, 2], delay="2s")
        waiting = threads.submit(later.result, timeout=60)
        first.kill()
        assert waiting.result(timeout=60) == 4
        assert app.submit("sum", payload=[3, 2]).result(timeout=30) == 5
        assert app.addresses.current == second.url


def test_an_event_stream_goes_on_at_the_other_gateway_and_reports_the_gap(two: tuple[Gateway, Gateway]) -> None:
    first, second = two
    with Bellwether([first.url, second.url]) as app, Bellwether(second.url) as other, app.events(kind="sum") as events:
        first.kill()
        # Submitted while the stream is away: either it is reconnected already, or it reports that it missed events.
        id_ = new_id()
        other.submit("sum", payload=[1], id=id_).result(timeout=30)
        for event in events:
            if isinstance(event, EventsMissed) or (isinstance(event, JobChanged) and event.job == id_):
                break
        last = other.submit("sum", payload=[2])
        for event in events:
            if isinstance(event, JobChanged) and (event.job, event.state) == (last.id, "succeeded"):
                break


def workers(name: str, app: Bellwether) -> set[str]:
    return {worker["id"] for worker in app.request("/v1/workers") if worker["node"] == name}


def test_a_worker_whose_gateway_dies_goes_on_at_the_other_one_without_a_loss(
    two: tuple[Gateway, Gateway], app: Bellwether, tmp_path: Path
) -> None:
    first, second = two
    log, release = tmp_path / "log", tmp_path / "release"

    with worker_process(first.url, "moves", "--url", second.url):
        serves(app, "py-hold")
        [former] = workers("moves", app)
        job = app.submit("py-hold", log=str(log), release=str(release))
        eventually(lambda: notes(log))
        first.kill()
        eventually(lambda: workers("moves", app) - {former}, within=60)
        release.touch()
        job.result(timeout=60)
    view = job.show()
    assert (view.state, view.losses, view.failures) == ("succeeded", 0, 0)
    runs = notes(log)
    assert len({note.token for note in runs}) == len(runs) <= view.attempt, "each run has an attempt of its own"


def test_a_worker_whose_gateway_stops_goes_on_at_the_other_one(
    two: tuple[Gateway, Gateway], app: Bellwether, tmp_path: Path
) -> None:
    first, second = two
    log, release = tmp_path / "log", tmp_path / "release"
    with worker_process(first.url, "goes-on", "--url", second.url) as process:
        serves(app, "py-hold")
        job = app.submit("py-hold", log=str(log), release=str(release))
        eventually(lambda: notes(log))
        [former] = workers("goes-on", app)
        first.stop()
        eventually(lambda: workers("goes-on", app) - {former}, within=60)
        release.touch()
        job.result(timeout=60)
        assert process.poll() is None, "the stop of a gateway does not end its workers"
    view = job.show()
    assert (view.state, view.losses, view.failures) == ("succeeded", 0, 0)
    # The other gateway took the attempt over, or the first one had handed it back and it ran again.
    runs = notes(log)
    assert len({note.token for note in runs}) == len(runs) <= view.attempt, "each run has an attempt of its own"
