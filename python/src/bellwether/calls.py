"""The operations of the API as `Call` values: path, body, how the answer is read, and whether a repetition is safe."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final, TypeVar
from urllib.parse import quote

from .errors import InvalidInput, Problem
from .exchange import Call, Repeat
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
from .options import NewJob, encode
from .values import duration_text, instant_text

T = TypeVar("T")

MAX_BATCH = 1000
MAX_BATCH_BYTES = 4 * 1024 * 1024
WAIT_SLICE = 20.0
"""Longest wait of one request. A broken connection is noticed this long after the request, plus `WAIT_MARGIN`."""
WAIT_MARGIN = 10.0


def _of(read: Callable[[Mapping[str, Any]], T]) -> Callable[[int, Any], T]:
    return lambda _status, document: read(document)


def _path(*parts: str) -> str:
    if any(part in ("", ".", "..") for part in parts):
        raise InvalidInput("a name in a path must not be empty")
    return "/v1/" + "/".join(quote(part, safe=":@") for part in parts)


def _query(**given: str | int | None) -> dict[str, str]:
    return {name: str(value) for name, value in given.items() if value is not None}


def submit(job: NewJob, traceparent: str | None = None) -> Call[Submitted]:
    """A repetition is the same job. Only `again` could open a job that has ended a second time."""
    repeat = Repeat.UNSENT if job.if_exists == "again" else Repeat.SAFE
    headers = {} if traceparent is None else {"traceparent": traceparent}
    body = encode(job.document())
    return Call("POST", "/v1/jobs", _of(Submitted.of), body=body, repeat=repeat, headers=headers)


BatchAnswer = list[Submitted | Problem]


def _batch(document: Mapping[str, Any]) -> BatchAnswer:
    jobs: list[Mapping[str, Any]] = document["jobs"]
    return [Problem.of(one["problem"], 0) if "problem" in one else Submitted.of(one) for one in jobs]


def batch(jobs: Sequence[NewJob]) -> Call[BatchAnswer]:
    """The outcome of each job. A repetition is the same jobs, unless one of them is submitted with `again`."""
    repeat = Repeat.UNSENT if any(job.if_exists == "again" for job in jobs) else Repeat.SAFE
    body = encode({"jobs": [job.document() for job in jobs]})
    return Call("POST", "/v1/batch", _of(_batch), body=body, repeat=repeat)


def members(group: str, first: int, jobs: Sequence[NewJob]) -> Call[BatchAnswer]:
    """A member is identified by its number, so a repetition is the same members."""
    documents = [{name: value for name, value in job.document().items() if name != "id"} for job in jobs]
    body = encode({"first": first, "jobs": documents})
    return Call("POST", _path("groups", group, "members"), _of(_batch), body=body)


def job(job: str) -> Call[JobView]:
    return Call("GET", _path("jobs", job), _of(JobView.of))


def _wait(parts: tuple[str, str], read: Callable[[Mapping[str, Any]], T], timeout: float, **more: str) -> Call[T]:
    query = {"timeout": duration_text(timeout), **more}
    return Call("GET", _path(*parts, "wait"), _of(read), query=query, read_timeout=timeout + WAIT_MARGIN)


def wait_job(job: str, timeout: float, generation: int = 1) -> Call[JobView]:
    return _wait(("jobs", job), JobView.of, timeout, generation=str(generation))


def wait_group(group: str, timeout: float) -> Call[GroupView]:
    return _wait(("groups", group), GroupView.of, timeout)


def explain(job: str) -> Call[Explanation]:
    return Call("GET", _path("jobs", job, "explain"), _of(Explanation.of))


def cancel(job: str) -> Call[Changed]:
    return Call("POST", _path("jobs", job, "cancel"), _of(Changed.of))


def retry(job: str) -> Call[Changed]:
    return Call("POST", _path("jobs", job, "retry"), _of(Changed.of))


def jobs_query(
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
) -> dict[str, str]:
    """Returns which jobs a list has, and whether they have their payloads and results.

    Raises `InvalidInput` if an instant has no time zone.
    """
    instants = {
        "submitted_after": submitted_after,
        "submitted_before": submitted_before,
        "finished_after": finished_after,
        "finished_before": finished_before,
    }
    texts = {name: instant_text(instant) for name, instant in instants.items() if instant is not None}
    return _query(state=state, kind=kind, lane=lane, group=group, payloads="true" if payloads else None) | texts


def list_jobs(query: Mapping[str, str], limit: int, after: str | None) -> Call[Page[JobView]]:
    def read(document: Mapping[str, Any]) -> Page[JobView]:
        return Page([JobView.of(job) for job in document["jobs"]], document["next"])

    return Call("GET", "/v1/jobs", _of(read), query={**query, **_query(limit=limit, after=after)})


def create_group(
    kind: str,
    id: str,  # noqa: A002
    total: int | None,
    *,
    fail_fast: bool = False,
    join: bool = True,
) -> Call[GroupView]:
    document: dict[str, Any] = {"kind": kind, "id": id, "fail_fast": fail_fast, "join": join}
    if total is not None:
        document["total"] = total
    return Call("POST", "/v1/groups", _of(GroupView.of), body=encode(document))


def group(group: str) -> Call[GroupView]:
    return Call("GET", _path("groups", group), _of(GroupView.of))


def abandon_group(group: str) -> Call[GroupView]:
    return Call("POST", _path("groups", group, "abandon"), _of(GroupView.of))


def list_groups(stage: str | None, limit: int, after: str | None) -> Call[Page[GroupSummary]]:
    def read(document: Mapping[str, Any]) -> Page[GroupSummary]:
        return Page([GroupSummary.of(group) for group in document["groups"]], document["next"])

    return Call("GET", "/v1/groups", _of(read), query=_query(stage=stage, limit=limit, after=after))


def add_schedule(document: Mapping[str, Any]) -> Call[ScheduleView]:
    return Call("POST", "/v1/schedules", _of(ScheduleView.of), body=encode(document))


def list_schedules(limit: int, after: str | None) -> Call[Page[ScheduleView]]:
    def read(document: Mapping[str, Any]) -> Page[ScheduleView]:
        return Page([ScheduleView.of(schedule) for schedule in document["schedules"]], document["next"])

    return Call("GET", "/v1/schedules", _of(read), query=_query(limit=limit, after=after))


def schedule(schedule: str) -> Call[ScheduleView]:
    return Call("GET", _path("schedules", schedule), _of(ScheduleView.of))


def change_schedule(schedule: str, document: Mapping[str, Any]) -> Call[ScheduleView]:
    """A repetition sets the same values."""
    return Call("PATCH", _path("schedules", schedule), _of(ScheduleView.of), body=encode(document))


def pause_schedule(schedule: str) -> Call[ScheduleView]:
    return Call("POST", _path("schedules", schedule, "pause"), _of(ScheduleView.of))


def resume_schedule(schedule: str) -> Call[ScheduleView]:
    return Call("POST", _path("schedules", schedule, "resume"), _of(ScheduleView.of))


def trigger_schedule(schedule: str) -> Call[Submitted]:
    """Each trigger submits another job, so it is not repeated. After 504 the problem names the job to look for."""
    path = _path("schedules", schedule, "trigger")
    return Call("POST", path, _of(Submitted.of), repeat=Repeat.UNSENT)


def _nothing() -> None:
    return None


def remove_schedule(schedule: str) -> Call[None]:
    return Call("DELETE", _path("schedules", schedule), lambda _status, _document: None, gone=_nothing)


def pause_kind(kind: str, note: str | None = None) -> Call[str]:
    body = None if note is None else encode({"note": note})
    return Call("POST", _path("kinds", kind, "pause"), _of(lambda document: str(document["outcome"])), body=body)


def resume_kind(kind: str) -> Call[str]:
    return Call("POST", _path("kinds", kind, "resume"), _of(lambda document: str(document["outcome"])))


def get(path: str, query: Mapping[str, str]) -> Call[Any]:
    """Any other GET request of the API; the answer is its JSON document."""
    return Call("GET", path, lambda _status, document: document, query=query)


EVENTS: Final = "/v1/events"


def events_query(job: str | None, kind: str | None) -> dict[str, str]:
    return _query(job=job, kind=kind)
