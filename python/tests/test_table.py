"""The table of attempts of a worker, and the outcomes that fit into one request."""

from __future__ import annotations

from bellwether.job import Job, JobFacts, Progress
from bellwether.worker.protocol import MAX_FINISH, Attempt, Stop, failed
from bellwether.worker.table import REMEMBERED, Table


def attempt(job: str, token: int = 1) -> Attempt:
    return Attempt(JobFacts(job, "mail", 1, 1, token), None, 60.0)


def test_an_attempt_is_delivered_once_and_a_later_one_of_the_job_again() -> None:
    table = Table()
    assert table.delivered(attempt("a"), renew=False) is not None
    assert table.delivered(attempt("a"), renew=False) is None
    assert table.finished(("a", 1), failed("no"))
    assert not table.finished(("a", 1), failed("again"))
    table.ended(("a", 1))
    assert table.delivered(attempt("a"), renew=False) is None, "an old answer delivers it again"
    assert table.delivered(attempt("a", token=2), renew=False) is not None


def test_ended_attempts_are_remembered_in_bounded_memory() -> None:
    table = Table()
    for token in range(REMEMBERED + 10):
        table.delivered(attempt("a", token), renew=False)
        table.ended(("a", token))
    assert len(table) == 0
    assert table.delivered(attempt("a", 0), renew=False) is not None
    assert table.delivered(attempt("a", REMEMBERED), renew=False) is None


def test_an_attempt_is_listed_until_its_end_is_answered() -> None:
    table = Table()
    table.delivered(attempt("a"), renew=False)
    table.finished(("a", 1), failed("no"))
    assert [facts.id for facts in table.listed()] == ["a"]
    assert table.running == []
    table.ended(("a", 1))
    assert table.listed() == []


def test_only_a_cancelled_attempt_still_has_an_outcome() -> None:
    table = Table()
    for job in ("a", "b"):
        table.delivered(attempt(job), renew=False)
    assert table.stop(Stop(("a", 1), "cancelled")) is not None
    assert table.stop(Stop(("b", 1), "handed_back")) is not None
    assert table.stop(Stop(("c", 1), "closed")) is None
    assert table.finished(("a", 1), failed("stopped"))
    assert not table.finished(("b", 1), failed("stopped"))


def test_a_request_has_a_bounded_number_and_size_of_outcomes() -> None:
    table = Table()
    for number in range(MAX_FINISH + 1):
        table.delivered(attempt(f"job-{number}"), renew=False)
        table.finished((f"job-{number}", 1), failed("no"))
    assert len(table.outcomes()) == MAX_FINISH
    large = Table()
    for number in range(30):
        large.delivered(attempt(f"job-{number}"), renew=False)
        large.finished((f"job-{number}", 1), {"succeeded": {"json": "x" * 60_000}})
    assert 10 <= len(large.outcomes()) <= 16


def test_a_lost_heartbeat_is_sent_again_with_newer_reports() -> None:
    table = Table()
    entry = table.delivered(attempt("a"), renew=False)
    assert entry is not None
    entry.job.progress(10, "old")
    entry.job.checkpoint(b"one")
    _, taken = table.beats()
    assert table.beats()[0] == [], "without a sign of life nothing is renewed"
    entry.job.progress(20, "new")
    table.restore(taken)
    [beat], _ = table.beats()
    assert (beat.progress, beat.checkpoint) == (Progress(20, "new"), b"one")


def test_only_the_first_stop_reason_counts() -> None:
    job = Job(JobFacts("a", "mail", 1, 1, 1))
    job.stop("cancelled")
    job.stop("drain")
    assert (job.cancelled, job.stop_reason) == (True, "cancelled")


def test_an_attempt_that_was_taken_over_is_named_by_its_new_token_and_recognised_by_all() -> None:
    table = Table()
    table.delivered(attempt("a"), renew=True)
    for was, new in ((1, 2), (2, 5)):
        table.taken_over({("a", was): new, ("b", 1): 2})
        assert [facts.fencing_token for facts in table.listed()] == [new]
    assert table.beats()[0][0].facts.fencing_token == 5
    assert table.delivered(attempt("a", token=5), renew=True) is None, "an answer delivers it by its new token"
    assert table.finished(("a", 1), failed("no")), "the handler knows the first token"
    (outcome,) = table.outcomes()
    assert (outcome.facts.fencing_token, table.named(outcome.facts).fencing_token) == (1, 5)
    table.ended(("a", 1))
    assert len(table) == 0
    for token in (1, 5):
        assert table.delivered(attempt("a", token), renew=True) is None


def test_a_stop_of_an_attempt_that_was_taken_over_finds_it() -> None:
    table = Table()
    entry = table.delivered(attempt("a"), renew=False)
    table.taken_over({("a", 1): 2})
    assert table.stop(Stop(("a", 2), "closed")) is entry
    assert len(table) == 0
