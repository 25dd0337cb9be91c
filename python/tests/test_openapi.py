"""The names of the package are those of the gateway's OpenAPI document."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import fields, is_dataclass
from datetime import datetime, timezone
from typing import Any, get_args, get_type_hints

import httpx
import pytest

from bellwether import (
    AsyncBellwether,
    Backoff,
    Bellwether,
    GroupView,
    JobChanged,
    JobView,
    NewJob,
    NewSchedule,
    Options,
    Problem,
    Remedy,
    ScheduleChange,
    ScheduleView,
    calls,
)
from bellwether.model import Explanation, GroupSummary, State, Submitted
from bellwether.options import IfExists
from bellwether.schedules import Ticks
from bellwether.testing import DevServer
from bellwether.values import new_id
from bellwether.worker import protocol

NOON = datetime(2026, 11, 21, 12, 0, 0, tzinfo=timezone.utc)

ALL_OPTIONS = Options(
    max_attempts=7,
    max_losses=2,
    dead_letter=True,
    backoff=Backoff(initial="500ms", max="10m"),
    timeout="1h",
    lease="90s",
    auto_renew=True,
    priority=7,
    tags=["gpu"],
    affinity="scene-1",
    lane="frames",
)

PAGES = {
    "limit": "the iterator has no limit: `page_size` is the limit of each of its requests",
    "after": "the iterator requests the following pages itself",
}
"""Parameters of lists that the clients do not offer, and why."""


class OpenApi:
    """The document of a gateway."""

    def __init__(self, document: dict[str, Any]) -> None:
        self._document = document

    def schema(self, name: str) -> dict[str, Any]:
        found: dict[str, Any] = self._document["components"]["schemas"][name]
        return found

    def names(self, name: str) -> set[str]:
        """The fields of a schema, and of the schemas that it consists of."""
        return set().union(*(part["properties"] for part in self._parts(self.schema(name))))

    def _parts(self, schema: dict[str, Any]) -> Iterator[dict[str, Any]]:
        if "$ref" in schema:
            schema = self.schema(schema["$ref"].rpartition("/")[2])
        several = [*schema.get("allOf", []), *schema.get("oneOf", [])]
        if not several:
            yield schema
        for part in several:
            yield from self._parts(part)

    def words(self, name: str) -> set[str]:
        """The words of an enumeration."""
        return set(self.schema(name)["enum"])

    def parameters(self, path: str, place: str = "query") -> set[str]:
        """The parameters of a GET request."""
        found = self._document["paths"][path]["get"]["parameters"]
        return {one["name"] for one in found if one["in"] == place}


@pytest.fixture(scope="module")
def api(server: DevServer) -> OpenApi:
    return OpenApi(httpx.get(f"{server.url}/openapi.json").raise_for_status().json())


def arguments(function: Callable[..., Any]) -> set[str]:
    """The parameters of a method, without `self` and the fields of a payload."""
    found = inspect.signature(function).parameters.values()
    return {one.name for one in found if one.name != "self" and one.kind is not one.VAR_KEYWORD}


def attributes(type_: type) -> set[str]:
    assert is_dataclass(type_)
    return {one.name for one in fields(type_)}


def both(method: str) -> Iterable[Callable[..., Any]]:
    """A method of the sync and of the async client."""
    return getattr(Bellwether, method), getattr(AsyncBellwether, method)


def test_options_have_the_names_of_the_api(api: OpenApi) -> None:
    assert attributes(Options) == set(ALL_OPTIONS.document()) == api.names("JobOptions")
    assert attributes(Backoff) == set(ALL_OPTIONS.document()["backoff"]) == api.names("Backoff")


def test_a_job_keeps_all_options(app: Bellwether) -> None:
    job = app.submit(f"options-{new_id()}", options=ALL_OPTIONS)
    assert job.show().document["options"] == ALL_OPTIONS.document()


def test_a_submission_has_the_names_of_the_api(api: OpenApi) -> None:
    job = NewJob(
        kind="sum",
        payload="1",
        id="sum-1",
        named="one",
        content_type="text/plain",
        options=ALL_OPTIONS,
        run_at=NOON,
        delay=1,
        expires_at=NOON,
        expires_in=1,
        if_exists="again",
    )
    assert attributes(NewJob) == set(job.document()) == api.names("NewJob")
    for function in (*both("submit"), *both("job")):
        assert arguments(function) == api.names("NewJob")
    assert set(get_args(IfExists)) == api.words("IfExists")


def test_the_filters_of_a_list_are_the_parameters_of_the_api(api: OpenApi) -> None:
    parameters = api.parameters("/v1/jobs")
    assert PAGES.keys() < parameters
    query = calls.jobs_query(
        state="dead",
        kind="sum",
        lane="frames",
        group="g",
        submitted_after=NOON,
        submitted_before=NOON,
        finished_after=NOON,
        finished_before=NOON,
        payloads=True,
    )
    assert set(calls.list_jobs(query, 1, "x").query) == parameters
    for function in both("jobs"):
        assert arguments(function) - {"page_size"} == parameters - PAGES.keys()
    assert set(get_args(State)) == api.words("State")


def test_a_problem_has_the_names_of_the_api(api: OpenApi) -> None:
    known = {"type" if name == "word" else name for name in attributes(Problem)}
    assert known - {"document"} == api.names("Problem")
    assert set(get_args(Remedy)) == api.words("Remedy")


def test_the_other_lists_have_the_parameters_of_the_api(api: OpenApi) -> None:
    assert set(calls.list_groups("open", 1, "x").query) == api.parameters("/v1/groups")
    assert set(calls.list_schedules(1, "x").query) == api.parameters("/v1/schedules")
    for method in ("groups", "schedules"):
        for function in both(method):
            assert arguments(function) - {"page_size"} == api.parameters(f"/v1/{method}") - PAGES.keys()
    assert set(calls.events_query("j", "sum")) == api.parameters("/v1/events")
    for function in both("events"):
        assert arguments(function) == api.parameters("/v1/events")


def test_a_wait_has_the_parameters_of_the_api(api: OpenApi) -> None:
    assert set(calls.wait_job("j", 1.0).query) == api.parameters("/v1/jobs/{id}/wait")
    assert set(calls.wait_group("g", 1.0).query) == api.parameters("/v1/groups/{id}/wait")
    for function in both("wait"):
        assert arguments(function) - {"job"} == api.parameters("/v1/jobs/{id}/wait")


def test_a_schedule_has_the_names_of_the_api(api: OpenApi) -> None:
    ticks: dict[str, Any] = {
        "cron": "30 2 * * *",
        "zone": "UTC",
        "every": 60,
        "anchor": NOON,
        "at": NOON,
        "misfire": "catch_up",
        "catch_up_limit": 1,
        "catch_up_within": 60,
        "overlap": "queue",
        "grace": 60,
    }
    assert attributes(ScheduleChange) == set(ScheduleChange(**ticks).document()) == api.names("ScheduleChange")
    job = NewJob(kind="sum", payload="1", content_type="text/plain", options=ALL_OPTIONS)
    schedule = NewSchedule(id="s", job=job, expires_after=60, job_id="j", replace=True, **ticks)
    document = schedule.document()
    assert attributes(NewSchedule) == set(document) == api.names("NewSchedule")
    assert set(document["job"]) == {"kind", "payload", "content_type", "options"}
    for name in ("misfire", "overlap"):
        [literal, _none] = get_args(get_type_hints(Ticks)[name])
        assert set(get_args(literal)) == api.words(name.capitalize())


def test_a_group_has_the_names_of_the_api(api: OpenApi) -> None:
    body = calls.create_group("sum", "g", 3, fail_fast=True).body
    assert body is not None
    assert set(json.loads(body)) == api.names("NewGroup")
    for function in both("group"):
        assert arguments(function) == api.names("NewGroup")


def test_a_pause_has_the_names_of_the_api(api: OpenApi) -> None:
    body = calls.pause_kind("sum", "deploy").body
    assert body is not None
    assert set(json.loads(body)) == api.names("NewPause")
    for function in both("pause_kind"):
        assert arguments(function) - {"kind"} == api.names("NewPause")


def test_a_worker_registers_with_the_names_of_the_api(api: OpenApi) -> None:
    kind = {"kind": "mail", "lease": "60s", "concurrency": 4}
    body = protocol.register("key", protocol.Settings("host-1", [kind], 1, ["gpu"], 30), "w-1", []).body
    assert body is not None
    assert set(json.loads(body)) == api.names("NewRemoteWorker")
    assert kind.keys() == api.names("RemoteKind")
    # The decorator calls the kind `name`. The worker itself lists its kinds and what it still runs.
    assert arguments(Bellwether.kind) >= api.names("RemoteKind") - {"kind"}
    assert arguments(Bellwether.run) >= api.names("NewRemoteWorker") - {"kinds", "former_worker", "running"}


@pytest.mark.parametrize(
    ("view", "schema"),
    [
        (JobView, "Job"),
        (Submitted, "Submitted"),
        (Explanation, "Explanation"),
        (GroupView, "Group"),
        (GroupSummary, "GroupSummary"),
        (ScheduleView, "Schedule"),
        (JobChanged, "Event"),
    ],
)
def test_the_attributes_of_an_answer_have_the_names_of_the_api(api: OpenApi, view: type, schema: str) -> None:
    found, names = attributes(view), api.names(schema)
    assert found - {"document"} <= names
    # `document` is the whole answer: it has the fields without an attribute.
    assert "document" in found or found == names
