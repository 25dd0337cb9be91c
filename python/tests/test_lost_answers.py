"""The client on a network that loses answers: nothing is lost, and nothing is done twice."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from network import Proxy

from bellwether import Bellwether, EventsMissed, JobChanged, OutcomeUnknown
from bellwether.testing import DevServer
from bellwether.values import new_id


@pytest.fixture
def proxy(server: DevServer) -> Iterator[Proxy]:
    proxy = Proxy(server.http_port)
    yield proxy
    proxy.close()


def test_a_lost_answer_to_a_submission_leaves_one_job(server: DevServer, proxy: Proxy) -> None:
    kind = f"lost-{new_id()}"
    with Bellwether(proxy.url) as app:
        proxy.drop_answers(3, b"POST /v1/jobs")
        job = app.submit(kind, n=1)
        assert proxy.to_drop == 0
        assert job.submitted.accepted == "same"
        assert [found.id for found in app.jobs(kind=kind)] == [job.id]


def test_a_lost_answer_to_a_batch_leaves_one_job_each(proxy: Proxy) -> None:
    kind = f"lost-{new_id()}"
    with Bellwether(proxy.url) as app:
        proxy.drop_answers(2, b"POST /v1/batch")
        jobs = app.submit_many([app.job(kind, n=n) for n in range(50)])
        assert proxy.to_drop == 0
        assert sorted(found.id for found in app.jobs(kind=kind)) == sorted(job.id for job in jobs)


def test_a_lost_answer_to_members_leaves_one_job_each(proxy: Proxy) -> None:
    with Bellwether(proxy.url) as app:
        group = app.group("sum", new_id(), total=20, join=False)
        proxy.drop_answers(2, b"/members")
        group.submit_many([app.job("sum", payload=[n]) for n in range(20)])
        assert proxy.to_drop == 0
        assert group.wait(timeout=30).succeeded == 20


def test_a_lost_answer_to_a_trigger_is_reported(proxy: Proxy) -> None:
    from bellwether import NewSchedule

    with Bellwether(proxy.url) as app:
        spec = NewSchedule(id=f"s-{new_id()}", job=app.job(f"lost-{new_id()}"), every="1h")
        app.add_schedule(spec)
        proxy.drop_answers(1, b"/trigger")
        with pytest.raises(OutcomeUnknown):
            app.trigger_schedule(spec.id)
        assert len(list(app.jobs(kind=spec.job.kind))) == 1
        proxy.drop_answers(1, b"DELETE /v1/schedules")
        app.remove_schedule(spec.id)
        assert proxy.to_drop == 0


def test_a_wait_goes_on_after_a_cut(server: DevServer, proxy: Proxy) -> None:
    with Bellwether(proxy.url) as app:
        job = app.submit("sleep", payload={"millis": 1500})
        proxy.drop_answers(1, b"/wait")
        assert job.wait(timeout=30).state == "succeeded"
        assert proxy.to_drop == 0


def test_a_stream_of_events_reports_a_cut_and_goes_on(server: DevServer, proxy: Proxy) -> None:
    kind = f"events-{new_id()}"
    with Bellwether(proxy.url) as through, Bellwether(server.url) as app, through.events(kind=kind) as events:
        first = app.submit(kind, n=1)
        seen = iter(events)
        event = next(seen)
        assert isinstance(event, JobChanged)
        assert (event.job, event.kind) == (first.id, kind)
        proxy.cut()
        proxy.heal()
        while not isinstance(event, EventsMissed):
            event = next(seen)
        assert event.reason == "reconnected"
        second = app.submit(kind, n=2)
        while not (isinstance(event, JobChanged) and event.job == second.id):
            event = next(seen)
