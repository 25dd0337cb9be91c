"""What is sent, when it is sent again, and which error its caller gets."""

from __future__ import annotations

import asyncio
import json
import pickle
from contextlib import closing
from typing import Any

import httpx
import pytest
from fake_gateway import FakeGateway

from bellwether import (
    AccessDenied,
    ApiError,
    AsyncBellwether,
    Bellwether,
    Conflict,
    InvalidInput,
    NewJob,
    NotFound,
    OutcomeUnknown,
    ServerError,
    Unavailable,
    UnexpectedAnswer,
    calls,
)
from bellwether.errors import Problem, error_of
from bellwether.exchange import Addresses, Call, Done, Exchange, Pause
from bellwether.model import Submitted

LOST = httpx.ReadError("connection reset")
NOT_SENT = httpx.ConnectError("connection refused")


def problem(status: int, word: str, **headers: str) -> httpx.Response:
    document = {"type": f"urn:bellwether:problem:{word}", "title": "T", "status": status, "detail": "D", "job": "j"}
    return httpx.Response(status, content=json.dumps(document), headers=headers)


def submission(**fields: Any) -> Exchange[Submitted]:
    return Exchange(calls.submit(NewJob(kind="sum", **fields)), now=0.0, retry_for=30.0)


ACCEPTED = httpx.Response(201, json={"id": "j", "duplicate": False, "accepted": "new", "generation": 1})


def test_a_submission_is_sent_again_with_the_same_id_after_a_lost_answer() -> None:
    exchange = submission()
    with httpx.Client() as client:
        first = exchange.request(client, "http://gateway", {}).content
        assert isinstance(exchange.failed(LOST, 1.0), Pause)
        assert exchange.request(client, "http://gateway", {}).content == first
    assert json.loads(first)["id"]
    assert isinstance(exchange.received(ACCEPTED, 2.0), Done)


def test_a_submission_that_opens_ended_jobs_is_not_repeated_after_a_lost_answer() -> None:
    assert isinstance(submission(if_exists="again").failed(NOT_SENT, 1.0), Pause)
    with pytest.raises(OutcomeUnknown):
        submission(if_exists="again").failed(LOST, 1.0)
    with pytest.raises(OutcomeUnknown):
        submission(if_exists="again").received(problem(504, "unknown"), 1.0)


def test_a_trigger_is_repeated_only_if_it_was_not_applied() -> None:
    def trigger() -> Exchange[Submitted]:
        return Exchange(calls.trigger_schedule("nightly"), 0.0, 30.0)

    assert isinstance(trigger().failed(NOT_SENT, 1.0), Pause)
    assert isinstance(trigger().received(problem(503, "unavailable"), 1.0), Pause)
    with pytest.raises(OutcomeUnknown):
        trigger().failed(LOST, 1.0)


def test_repetitions_end_at_the_deadline_with_the_state_of_knowledge() -> None:
    with pytest.raises(Unavailable):
        submission().failed(NOT_SENT, 30.0)
    with pytest.raises(OutcomeUnknown):
        submission().failed(LOST, 30.0)
    maybe_applied = submission()
    maybe_applied.failed(LOST, 1.0)
    with pytest.raises(OutcomeUnknown):
        maybe_applied.failed(NOT_SENT, 30.0)
    with pytest.raises(Unavailable):  # reading changes nothing
        Exchange(calls.job("j"), 0.0, 30.0).failed(LOST, 30.0)


def test_a_pause_is_as_long_as_the_gateway_asks_for() -> None:
    step = submission().received(problem(503, "saturated", **{"retry-after": "7"}), 0.0)
    assert isinstance(step, Pause)
    assert 7.0 <= step.seconds < 8.0
    with pytest.raises(Unavailable) as raised:
        submission().received(problem(503, "saturated", **{"retry-after": "60"}), 0.0)
    assert raised.value.retry_after == 60.0


def test_pauses_grow_to_their_limit() -> None:
    exchange = Exchange(calls.job("j"), 0.0, 1e9)
    pauses = [exchange.failed(NOT_SENT, 0.0).seconds for _ in range(40)]
    assert pauses[0] <= 0.1
    assert 1.0 <= pauses[-1] <= 2.0


def test_a_removal_that_a_lost_request_has_done_is_done() -> None:
    exchange = Exchange(calls.remove_schedule("nightly"), 0.0, 30.0)
    with pytest.raises(NotFound):
        exchange.received(problem(404, "not-found"), 1.0)
    exchange.failed(LOST, 1.0)
    assert exchange.received(problem(404, "not-found"), 2.0) == Done(None)


@pytest.mark.parametrize(
    ("status", "word", "error"),
    [
        (400, "invalid", InvalidInput),
        (401, "unauthenticated", AccessDenied),
        (403, "forbidden", AccessDenied),
        (404, "not-found", NotFound),
        (409, "conflict", Conflict),
        (413, "too-large", InvalidInput),
        (500, "panicked", ServerError),
        (502, "refused", ServerError),
    ],
)
def test_an_error_has_the_class_of_what_its_caller_can_do(status: int, word: str, error: type[ApiError]) -> None:
    with pytest.raises(error) as raised:
        submission().received(problem(status, word), 0.0)
    assert type(raised.value) is error
    assert raised.value.problem is not None
    assert (raised.value.problem.word, raised.value.problem.job) == (word, "j")


@pytest.mark.parametrize(
    ("status", "word"), [(429, "too-many-requests"), (503, "unavailable"), (504, "late"), (504, "unknown")]
)
def test_a_passing_error_is_repaired_by_a_repetition(status: int, word: str) -> None:
    exchange = submission()
    assert isinstance(exchange.received(problem(status, word), 0.0), Pause)
    assert isinstance(exchange.received(ACCEPTED, 1.0), Done)


def answered(status: int, word: str, remedy: str | None) -> ApiError:
    document = {"type": f"urn:bellwether:problem:{word}", "status": status, "remedy": remedy}
    return error_of(Problem.of(document, status))


@pytest.mark.parametrize(
    ("status", "word", "remedy", "derived"),
    [
        (400, "invalid", "fix_input", "fix_input"),
        (401, "unauthenticated", "fix_input", "fix_input"),
        (404, "not-found", "fix_input", "fix_input"),
        (409, "conflict", "give_up", "fix_input"),
        (409, "attempt-fenced", "give_up", "fix_input"),
        (429, "too-many-requests", "retry", "retry"),
        (503, "unavailable", "retry", "retry"),
        (504, "late", "retry", "retry"),
        (504, "unknown", "read_back", "read_back"),
        (500, "panicked", "give_up", "give_up"),
    ],
)
def test_the_remedy_is_that_of_the_gateway_or_derived_from_the_class(
    status: int, word: str, remedy: str, derived: str
) -> None:
    error = answered(status, word, remedy)
    assert (error.remedy, error.is_retryable) == (remedy, remedy == "retry")
    # A proxy, or a gateway with a new word.
    for unknown in (None, "pray"):
        error = answered(status, word, unknown)
        assert (error.remedy, error.is_retryable) == (derived, derived == "retry")


def test_an_unknown_outcome_is_never_retryable() -> None:
    # The same call without an id would submit another job.
    assert answered(504, "unknown", "retry").remedy == "read_back"
    exchange = Exchange(calls.trigger_schedule("nightly"), 0.0, 30.0)
    with pytest.raises(OutcomeUnknown) as raised:
        exchange.failed(LOST, 1.0)
    assert (raised.value.remedy, raised.value.is_retryable) == ("read_back", False)


def test_an_error_without_an_answer_has_a_remedy() -> None:
    with pytest.raises(Unavailable) as raised:
        Exchange(calls.job("j"), 0.0, 30.0).failed(LOST, 30.0)
    assert (raised.value.remedy, raised.value.is_retryable) == ("retry", True)
    assert pickle.loads(pickle.dumps(answered(409, "conflict", "give_up"))).remedy == "give_up"  # noqa: S301


def test_a_conflict_during_the_request_is_repaired_by_a_repetition() -> None:
    assert isinstance(submission().received(problem(409, "conflict", **{"retry-after": "1"}), 0.0), Pause)


@pytest.mark.parametrize("body", [b"", b"<html>", b"[]", b'{"id": 1}', b"\xff", b"[" * 100_000])
def test_a_foreign_answer_is_an_error_and_not_a_crash(body: bytes) -> None:
    with pytest.raises(UnexpectedAnswer):
        submission().received(httpx.Response(200, content=body), 0.0)
    # A proxy says nothing about what happened behind it.
    assert isinstance(submission().received(httpx.Response(502, content=body), 0.0), Pause)


def test_paths_are_escaped_and_never_empty() -> None:
    assert calls.job("a/b?c").path == "/v1/jobs/a%2Fb%3Fc"
    for name in ("", ".", ".."):
        with pytest.raises(InvalidInput):
            calls.job(name)


def test_another_gateway_is_used_when_one_fails() -> None:
    addresses = Addresses(["http://a/", "http://b"])
    addresses.move("http://a")
    addresses.move("http://a")  # another thread noticed the same failure
    assert addresses.current == "http://b"
    for wrong in ([], ["gateway:8080"]):
        with pytest.raises(ValueError, match="gateway"):
            Addresses(wrong)


def test_a_pause_has_a_body_only_with_a_note() -> None:
    with httpx.Client() as client:
        plain = Exchange(calls.pause_kind("mail"), 0.0, 0.0).request(client, "http://gateway", {})
        noted = Exchange(calls.pause_kind("mail", "SMTP is down"), 0.0, 0.0).request(client, "http://gateway", {})
    assert (plain.method, plain.url.path) == (noted.method, noted.url.path) == ("POST", "/v1/kinds/mail/pause")
    assert (plain.content, plain.headers.get("content-type")) == (b"", None)
    assert (json.loads(noted.content), noted.headers["content-type"]) == ({"note": "SMTP is down"}, "application/json")


def test_both_clients_send_the_note_of_a_pause() -> None:
    with closing(FakeGateway()) as gateway:
        gateway.refuse = lambda _name, _body: (200, {"kind": "mail", "outcome": "paused"})
        with Bellwether(gateway.url) as app:
            assert app.pause_kind("mail") == app.pause_kind("mail", note="by sync") == "paused"

        async def pause() -> None:
            async with AsyncBellwether(gateway.url) as app:
                assert await app.pause_kind("mail", note="by async") == "paused"

        asyncio.run(pause())
        assert gateway.bodies("pause") == [{}, {"note": "by sync"}, {"note": "by async"}]


def test_the_body_is_json_and_the_headers_are_sent() -> None:
    call: Call[None] = Call("POST", "/x", lambda _status, _document: None, body=b"{}", headers={"traceparent": "t"})
    with httpx.Client() as client:
        request = Exchange(call, 0.0, 0.0).request(client, "http://gateway", {"authorization": "Bearer s"})
    assert request.headers["content-type"] == "application/json"
    assert (request.headers["traceparent"], request.headers["authorization"]) == ("t", "Bearer s")
