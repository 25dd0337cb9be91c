"""The sync client on a real gateway."""

from __future__ import annotations

import time
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest

from bellwether import (
    Backoff,
    BatchRefused,
    Bellwether,
    Conflict,
    Invalid,
    InvalidInput,
    JobCancelled,
    JobDead,
    JobView,
    NewSchedule,
    NotFound,
    Options,
    ScheduleChange,
    Unavailable,
    WaitTimeout,
)
from bellwether.testing import free_port, running_worker
from bellwether.values import new_id


def test_a_job_returns_its_result(app: Bellwether) -> None:
    job = app.submit("sum", payload=[1, 2, 3])
    assert job.result(timeout=30) == 6
    view = job.show()
    assert (view.state, view.attempt, view.payload) == ("succeeded", 1, [1, 2, 3])
    assert view.ended
    assert view.submitted_at is not None
    assert view.finished_at is not None
    assert view.submitted_at <= view.finished_at


def test_a_repeated_submission_is_the_same_job(app: Bellwether) -> None:
    id_ = new_id()
    first = app.submit("sum", id=id_, payload=[1])
    second = app.submit("sum", id=id_, payload=[1])
    assert (first.submitted.accepted, second.submitted.accepted) == ("new", "same")
    with pytest.raises(Conflict, match="belongs to another job") as raised:
        app.submit("sum", id=id_, payload=[2])
    assert raised.value.problem is not None
    assert (raised.value.problem.word, raised.value.problem.job) == ("conflict", id_)


def test_a_job_is_named_within_its_kind(app: Bellwether) -> None:
    name = new_id()
    job = app.submit("sum", named=name, payload=[1, 2])
    assert job.id == f"sum:{name}"
    assert job.result(timeout=30) == 3
    again = app.submit_many([app.job("sum", named=name, payload=[1, 2])])
    assert [(handle.id, handle.submitted.accepted) for handle in again] == [(job.id, "same")]
    with pytest.raises(InvalidInput, match="give id or named, not both"):
        app.submit("sum", id=name, named=name, payload=[1])


def test_a_payload_has_a_content_type(app: Bellwether) -> None:
    job = app.submit("no-handler", payload="<p>hi</p>", content_type="text/html")
    assert job.show().payload == "<p>hi</p>"
    with pytest.raises(InvalidInput, match="text/html"):
        app.submit("no-handler", to="a@example.org", content_type="text/html")


def test_keyword_arguments_are_the_payload(app: Bellwether) -> None:
    job = app.submit("no-handler", to="a@example.org", subject="hi", delay=timedelta(hours=1))
    assert job.show().payload == {"to": "a@example.org", "subject": "hi"}
    assert job.show().state == "delayed"
    with pytest.raises(InvalidInput, match="not both"):
        app.submit("no-handler", payload=[1], to="a@example.org")


def test_options_reach_the_job_and_override_those_of_the_kind(app: Bellwether) -> None:
    @app.kind("optional", max_attempts=3, timeout=9)
    def optional() -> None: ...

    backoff = Backoff(initial=1, max=60)
    job = app.submit(optional, options=Options(timeout="1m", priority=9, backoff=backoff, lane="a", tags=["gpu"]))
    options = job.show().document["options"]
    assert options["max_attempts"] == 3
    assert options["timeout"] == "1m"
    assert options["backoff"] == {"initial": "1s", "max": "1m"}
    assert (options["priority"], options["lane"], options["tags"]) == (9, "a", ["gpu"])
    assert app.submit(optional).show().document["options"]["timeout"] == "9s"


def test_invalid_input_names_the_field(app: Bellwether) -> None:
    with pytest.raises(InvalidInput, match="priority"):
        app.submit("sum", payload=[1], options=Options(priority=12))
    with pytest.raises(InvalidInput, match="not a JSON value"):
        app.submit("sum", payload=[object()])
    with pytest.raises(InvalidInput, match="not the handler"):
        app.submit(print)
    with pytest.raises(NotFound):
        app.get("never-submitted")


def test_a_waiting_job_is_cancelled_and_opened_again(app: Bellwether) -> None:
    job = app.submit("sum", payload=[4], delay="1h")
    with pytest.raises(WaitTimeout):
        job.result(timeout=0.2)
    assert job.cancel().outcome == "cancelled"
    with pytest.raises(JobCancelled) as raised:
        job.result(timeout=30)
    assert raised.value.job.state == "cancelled"
    assert job.retry().generation == 2
    assert job.result(timeout=30) == 4


def test_a_dead_job_raises_its_error(app: Bellwether) -> None:
    job = app.submit("sum", payload="not numbers")
    with pytest.raises(JobDead, match=job.id):
        job.result(timeout=30)
    assert job.explain().state == "dead"


def test_explain_gives_the_reason(app: Bellwether) -> None:
    explanation = app.submit("no-handler").explain()
    assert explanation.state == "queued"
    assert explanation.sentence


def test_a_batch_of_any_size_is_submitted(app: Bellwether) -> None:
    jobs = [app.job("sum", payload=[number]) for number in range(1200)]
    handles = app.submit_many(jobs)
    assert [handle.id for handle in handles] == [job.id for job in jobs]
    assert handles[-1].result(timeout=60) == 1199
    again = app.submit_many(jobs[:10])
    assert {handle.submitted.accepted for handle in again} == {"same"}
    assert app.submit_many([]) == []


def test_a_batch_of_anything_but_jobs_says_how_to_build_them(app: Bellwether) -> None:
    jobs: list[Any] = [app.job("sum", payload=[1]), {"kind": "sum"}]
    with pytest.raises(
        TypeError, match=r"jobs\[1\] is a dict: build each job of a batch with app\.job\(kind, \.\.\.\)"
    ):
        app.submit_many(jobs)


def test_a_batch_reports_what_was_refused(app: Bellwether) -> None:
    taken = app.submit("sum", payload=[1])
    good = app.job("sum", payload=[3])
    with pytest.raises(BatchRefused) as raised:
        app.submit_many([good, app.job("sum", id=taken.id, payload=[2])])
    assert list(raised.value.errors) == [1]
    assert isinstance(raised.value.errors[1], Conflict)
    assert app.result(str(good.id), timeout=30) == 3


def test_jobs_are_listed_over_pages(app: Bellwether) -> None:
    kind = f"paged-{new_id()}"
    ids = {handle.id for handle in app.submit_many([app.job(kind, n=n) for n in range(25)])}
    assert {job.id for job in app.jobs(kind=kind, page_size=10)} == ids
    assert list(app.jobs(kind=kind, state="dead")) == []


def test_listed_jobs_have_payloads_and_results_on_request(app: Bellwether) -> None:
    kind = f"listed-{new_id()}"

    @app.kind(kind)
    def doubles(n: int) -> int:
        return 2 * n

    with running_worker(app):
        jobs = app.submit_many([app.job(kind, n=n) for n in range(5)])
        assert [job.result(timeout=30) for job in jobs] == [0, 2, 4, 6, 8]
    without = list(app.jobs(kind=kind, page_size=2))
    assert {(job.payload, job.result) for job in without} == {(None, None)}
    full = list(app.jobs(kind=kind, page_size=2, payloads=True))
    assert sorted((job.payload["n"], job.result) for job in full) == [(n, 2 * n) for n in range(5)]


def test_jobs_are_selected_by_the_times_of_their_submission_and_end(app: Bellwether) -> None:
    options = Options(lane=new_id())

    def submit(**start: Any) -> JobView:
        job = app.submit("sum", payload=[1], options=options, **start)
        return job.show() if start else job.wait(timeout=30)

    first, second, waiting = submit(), submit(), submit(delay="1h")

    def found(**times: Any) -> list[str]:
        jobs = {job.id for job in app.jobs(lane=options.lane, page_size=2, **times)}
        return [job.id for job in (first, second, waiting) if job.id in jobs]

    assert found() == [first.id, second.id, waiting.id]
    assert found(submitted_before=second.submitted_at) == [first.id]
    assert found(submitted_after=second.submitted_at) == [second.id, waiting.id]
    assert found(finished_before=second.finished_at) == [first.id]
    assert found(finished_after=second.finished_at) == [second.id]
    assert found(submitted_before=second.submitted_at, finished_after=second.finished_at) == []
    assert second.finished_at is not None
    elsewhere = second.finished_at.astimezone(timezone(timedelta(hours=-7)))
    assert found(finished_after=elsewhere) == found(finished_after=elsewhere.isoformat()) == [second.id]


def test_an_instant_without_a_time_zone_is_refused_before_a_request(app: Bellwether) -> None:
    with pytest.raises(InvalidInput, match="no time zone"):
        app.jobs(finished_after=datetime(2026, 11, 21, 12, 0, 0))
    with pytest.raises(InvalidInput, match="is not an instant"):
        next(app.jobs(finished_after="yesterday"))


def test_a_group_without_a_join_runs_its_members(app: Bellwether) -> None:
    name = new_id()
    group = app.group("sum", name, join=False)
    members = group.submit_many([app.job("sum", payload=[n]) for n in range(3)])
    again = group.submit_many([app.job("sum", payload=[n]) for n in range(3)])
    assert [member.id for member in members] == [member.id for member in again]
    assert group.seal(3).total == 3
    done = group.wait(timeout=30)
    assert (done.stage, done.succeeded) == ("done", 3)
    assert name in {summary.id for summary in app.groups(page_size=10)}
    assert {job.id for job in app.jobs(group=name)} == {member.id for member in members}
    open_group = app.group("sum", new_id())
    with pytest.raises(WaitTimeout):
        open_group.wait(timeout=0.2)
    assert open_group.abandon().stage in ("open", "done")
    with pytest.raises(InvalidInput, match="no join"):
        group.join_result(timeout=30)


def test_a_join_runs_once_after_all_members_and_reads_their_results(app: Bellwether) -> None:
    kind = f"part-{new_id()}"
    joined: list[dict[str, Any]] = []

    @app.kind(kind)
    def part(n: int) -> int:
        return n * n

    @app.kind(f"{kind}.join", whole=True)
    def total(summary: dict[str, Any]) -> int:
        joined.append(summary)
        members = app.jobs(group=summary["group"], kind=summary["kind"], payloads=True)
        return sum(member.result for member in members)

    group = app.group(kind, new_id(), total=4)
    with running_worker(app):
        group.submit_many([app.job(kind, n=n) for n in range(3)])
        with pytest.raises(WaitTimeout):
            group.join_result(timeout=0.5)
        assert joined == [], "a member is missing"
        group.submit_many([app.job(kind, n=3)], first=3)
        assert group.join_result(timeout=30) == 0 + 1 + 4 + 9
    assert joined == [{"group": group.id, "kind": kind, "total": 4, "parent": None, "stopped": None}]
    assert group.show().join == f"{kind}.join:@{group.id}"


def test_the_join_of_a_stopped_group_gets_the_reason(app: Bellwether) -> None:
    kind = f"stops-{new_id()}"

    @app.kind(kind)
    def stops(n: int) -> None:
        raise Invalid(f"member {n}")

    @app.kind(f"{kind}.join")
    def reason(stopped: str | None, **_rest: Any) -> None:
        raise Invalid(f"stopped by {stopped}")

    group = app.group(kind, new_id(), total=1, fail_fast=True)
    with running_worker(app):
        group.submit_many([app.job(kind, n=0)])
        with pytest.raises(JobDead, match="stopped by member 0"):
            group.join_result(timeout=30)


def test_a_schedule_is_managed(app: Bellwether) -> None:
    spec = NewSchedule(id=f"s-{new_id()}", job=app.job("sum", payload=[5]), cron="30 2 * * *", zone="Europe/Berlin")
    added = app.add_schedule(spec)
    assert added.next is not None
    assert added.next > datetime.now(timezone.utc)
    assert app.add_schedule(spec).id == spec.id
    assert app.pause_schedule(spec.id).paused is True
    assert app.resume_schedule(spec.id).paused is False
    assert app.trigger_schedule(spec.id).result(timeout=30) == 5
    assert spec.id in {schedule.id for schedule in app.schedules(page_size=1)}
    app.remove_schedule(spec.id)
    with pytest.raises(NotFound):
        app.get_schedule(spec.id)


def test_a_schedule_is_changed_and_keeps_what_is_not_given(app: Bellwether) -> None:
    job = app.job("sum", payload=[5])
    spec = NewSchedule(id=f"s-{new_id()}", job=job, every="1h", overlap="forbid", expires_after="2h")
    added = app.add_schedule(spec)
    changed = app.change_schedule(
        spec.id, ScheduleChange(cron="30 2 * * *", zone="Europe/Berlin", grace=timedelta(minutes=5))
    )
    assert changed.next is not None
    assert (changed.next.minute, changed.next.second) == (30, 0)
    assert changed.document["overlap"] == added.document["overlap"] == "forbid"
    assert app.change_schedule(spec.id, ScheduleChange(overlap="queue")).next == changed.next
    assert app.get_schedule(spec.id).document["overlap"] == "queue"
    with pytest.raises(InvalidInput, match="one of cron, every and at"):
        app.change_schedule(spec.id, ScheduleChange(cron="30 2 * * *", every="1h"))
    late = app.change_schedule(spec.id, ScheduleChange(misfire="catch_up", catch_up_limit=3)).document
    assert (late["misfire"], late["catch_up_limit"], late["catch_up_within"]) == ("catch_up", 3, "1d")
    late = app.change_schedule(spec.id, ScheduleChange(catch_up_within="2h")).document
    assert (late["catch_up_limit"], late["catch_up_within"]) == (3, "2h")
    with pytest.raises(InvalidInput, match="has no delay"):
        app.add_schedule(NewSchedule(id=spec.id, job=app.job("sum", payload=[5], delay=60), every="1h"))
    app.remove_schedule(spec.id)
    with pytest.raises(NotFound):
        app.change_schedule(spec.id, ScheduleChange(every="1h"))


def test_a_paused_kind_waits(app: Bellwether) -> None:
    kind = f"paused-{new_id()}"
    assert app.pause_kind(kind) == "paused"
    assert kind in {one["kind"] for one in app.request("/v1/kinds")}
    assert app.resume_kind(kind) == "resumed"


def test_a_pause_has_a_note(app: Bellwether) -> None:
    kind = f"noted-{new_id()}"
    note = f"SMTP is down: {new_id()}"
    assert app.pause_kind(kind, note=note) == "paused"
    [paused] = [one["paused"] for one in app.request("/v1/kinds") if one["kind"] == kind]
    assert paused["note"] == note
    assert app.pause_kind(kind, note=note) == "already_paused"
    assert app.resume_kind(kind) == "resumed"


def test_a_client_without_a_gateway_gives_up_after_its_time() -> None:
    started = time.monotonic()
    with Bellwether(f"http://127.0.0.1:{free_port()}", retry_for=0.5) as nowhere, pytest.raises(Unavailable):
        nowhere.submit("sum", payload=[1])
    assert time.monotonic() - started < 10


def test_a_second_gateway_is_used_when_the_first_is_gone(app: Bellwether) -> None:
    with Bellwether([f"http://127.0.0.1:{free_port()}", *app.addresses.urls]) as both:
        assert both.submit("sum", payload=[1, 1]).result(timeout=30) == 2
