"""The worker against a gateway that loses answers, forgets it, fences it and stops its attempts."""

from __future__ import annotations

import asyncio
import base64
import logging
import os
import re
import threading
import traceback
from collections.abc import Iterator
from signal import SIGTERM
from typing import Any

import handlers
import pytest
from eventually import eventually
from fake_gateway import Document, FakeGateway, problem

from bellwether import Bellwether, Invalid, InvalidInput, Job, RetryLater, Worker
from bellwether.testing import running_worker


@pytest.fixture
def gateway() -> Iterator[FakeGateway]:
    gateway = FakeGateway()
    yield gateway
    gateway.close()


@pytest.fixture
def app(gateway: FakeGateway) -> Bellwether:
    return Bellwether(gateway.url)


class Runs:
    """Counts runs by job."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.jobs: list[str] = []

    def add(self, job: str) -> None:
        with self._lock:
            self.jobs.append(job)


def test_the_worker_registers_its_kinds(gateway: FakeGateway, app: Bellwether) -> None:
    @app.kind("mail", lease=60, concurrency=4)
    def mail() -> None: ...

    with running_worker(app, slots=3, tags=["gpu"], node_id="host-1", session_timeout=9):
        eventually(lambda: gateway.bodies("poll"))
    registration = gateway.registrations[0]
    assert registration["kinds"] == [{"kind": "mail", "lease": "60s", "concurrency": 4}]
    assert (registration["slots"], registration["tags"], registration["node_id"]) == (3, ["gpu"], "host-1")
    assert (registration["session_timeout"], registration["running"]) == ("9s", [])
    assert gateway.bodies("poll")[0]["timeout"] == "3s", "a third of the timeout"
    assert (gateway.drained, gateway.left) == (True, True)


def test_payloads_become_arguments_and_returns_become_results(gateway: FakeGateway, app: Bellwether) -> None:
    @app.kind("fields")
    def fields(to: str, subject: str = "none") -> list[str]:
        return [to, subject]

    @app.kind("one")
    def one(numbers: list[int]) -> int:
        return sum(numbers)

    @app.kind("whole", whole=True)
    async def whole(payload: Any, attempt: Job) -> Any:
        return [payload, attempt.id, attempt.fencing_token, attempt.facts.group]

    @app.kind("nothing")
    def nothing() -> None: ...

    with running_worker(app, slots=16):
        gateway.deliver("a", "fields", {"to": "x"})
        gateway.deliver("b", "one", [1, 2])
        gateway.deliver("c", "whole", {"to": "x"}, group="g")
        gateway.deliver("e", "nothing")
        assert gateway.outcome("a") == {"succeeded": {"json": ["x", "none"]}}
        assert gateway.outcome("b") == {"succeeded": {"json": 3}}
        assert gateway.outcome("c") == {"succeeded": {"json": [{"to": "x"}, "c", 7, "g"]}}
        assert gateway.outcome("e") == {"succeeded": {"json": None}}


def test_bytes_are_sent_as_base64(gateway: FakeGateway, app: Bellwether) -> None:
    @app.kind("bytes")
    def reverse(data: bytes) -> bytes:
        return data[::-1]

    gateway.deliver("d", "bytes")
    gateway.attempts["d"]["payload"] = {"base64": base64.b64encode(b"abc").decode()}
    with running_worker(app):
        assert gateway.outcome("d") == {"succeeded": {"base64": base64.b64encode(b"cba").decode()}}


def test_exceptions_become_outcomes(gateway: FakeGateway, app: Bellwether) -> None:
    errors = {
        "fails": ValueError("broken"),
        "silent": ValueError(),
        "exits": SystemExit(3),
        "invalid": Invalid("no address"),
        "later": RetryLater("5m"),
        "long": RuntimeError("é" * 5000),
        "cancels": asyncio.CancelledError(),
    }

    @app.kind("raise")
    def raises(name: str) -> None:
        raise errors[name]

    @app.kind("araise")
    async def araises(name: str) -> None:
        raise errors[name]

    @app.kind("returns")
    def returns(name: str) -> Any:
        return {"object": object(), "large": "x" * 70_000, "nan": float("nan"), "surrogate": "\ud800"}[name]

    with running_worker(app, slots=16):
        for kind in ("raise", "araise"):
            for name in errors:
                if (kind, name) != ("araise", "exits"):
                    gateway.deliver(f"{kind}-{name}", kind, {"name": name})
        for name in ("object", "large", "nan", "surrogate"):
            gateway.deliver(name, "returns", {"name": name})
        gateway.deliver("unfit", "raise", {"unknown": 1})
        gateway.deliver("unknown", "no-such-kind")
        for kind in ("raise", "araise"):
            assert gateway.outcome(f"{kind}-fails") == {"failed": "ValueError: broken"}
            assert gateway.outcome(f"{kind}-silent") == {"failed": "ValueError"}
            assert gateway.outcome(f"{kind}-invalid") == {"invalid": "no address"}
            assert gateway.outcome(f"{kind}-later") == {"retry_later": "5m"}
            assert "failed" in gateway.outcome(f"{kind}-cancels")
            assert len(gateway.outcome(f"{kind}-long")["failed"].encode()) <= 4096
        assert gateway.outcome("raise-exits") == {"failed": "RuntimeError: SystemExit: 3"}
        assert "store it elsewhere" in gateway.outcome("large")["failed"]
        for name in ("object", "nan", "surrogate"):
            assert "not a JSON value" in gateway.outcome(name)["failed"]
        assert "does not match" in gateway.outcome("unfit")["invalid"]
        assert "no handler" in gateway.outcome("unknown")["failed"]


@pytest.mark.parametrize("call", ["poll", "finish", "heartbeat"])
def test_lost_answers_are_repaired_and_run_nothing_twice(gateway: FakeGateway, app: Bellwether, call: str) -> None:
    runs = Runs()

    @app.kind("count", auto_renew=True)
    def count(job: Job) -> None:
        runs.add(job.id)

    gateway.lose[call] = 3
    jobs = [f"job-{n}" for n in range(20)]
    with running_worker(app, session_timeout=3):
        for job in jobs:
            gateway.deliver(job, "count")
        for job in jobs:
            gateway.outcome(job)
        eventually(lambda: gateway.lose[call] == 0)
    assert sorted(runs.jobs) == sorted(jobs)


def test_an_answer_that_was_lost_on_the_way_in_registers_once_more(gateway: FakeGateway, app: Bellwether) -> None:
    @app.kind("count")
    def count() -> None: ...

    refused = iter([(503, problem(503, "saturated"))] * 2)
    gateway.refuse = lambda name, _body: next(refused, None) if name == "register" else None
    with running_worker(app):
        gateway.deliver("a", "count")
        gateway.outcome("a")


def test_a_forgotten_worker_registers_again_with_what_it_runs(gateway: FakeGateway, app: Bellwether) -> None:
    runs, release = Runs(), threading.Event()

    @app.kind("hold")
    def hold(job: Job) -> str:
        runs.add(job.id)
        release.wait(20)
        return "held"

    with running_worker(app):
        gateway.deliver("a", "hold")
        eventually(lambda: runs.jobs)
        gateway.forget_worker()
        eventually(lambda: len(gateway.registrations) == 2)
        release.set()
        assert gateway.outcome("a") == {"succeeded": {"json": "held"}}
    first, again = gateway.registrations
    assert again["running"] == [{"job": "a", "attempt": 1, "fencing_token": 7, "generation": 1, "submission": "s-a"}]
    assert (first["former_worker"], again["former_worker"]) == (None, "w-1")
    assert runs.jobs == ["a"]


def test_a_fenced_outcome_is_dropped(gateway: FakeGateway, app: Bellwether) -> None:
    @app.kind("count")
    def count() -> None: ...

    gateway.fenced = {"a"}

    def alone(name: str, body: Document) -> tuple[int, Document] | None:
        fenced = name == "finish" and [one["job"] for one in body["attempts"]] == ["a"]
        return (409, problem(409, "attempt-fenced")) if fenced else None

    gateway.refuse = alone
    with running_worker(app):
        gateway.deliver("a", "count")
        eventually(lambda: gateway.bodies("finish"))
        gateway.attempts.pop("a")
        gateway.deliver("b", "count")
        gateway.outcome("b")
        eventually(lambda: gateway.bodies("poll")[-1]["running"] == [])
    assert len([body for body in gateway.bodies("finish") if body["attempts"][0]["job"] == "a"]) == 1


def test_a_result_that_the_gateway_refuses_fails_only_its_attempt(gateway: FakeGateway, app: Bellwether) -> None:
    @app.kind("echo")
    def echo(text: str) -> str:
        return text

    def refuse(name: str, body: Document) -> tuple[int, Document] | None:
        bad = name == "finish" and any(one["outcome"] == {"succeeded": {"json": "bad"}} for one in body["attempts"])
        return (400, problem(400, "invalid")) if bad else None

    gateway.refuse = refuse
    for name in ("good-1", "bad", "good-2"):
        gateway.deliver(name, "echo", {"text": name})
    with running_worker(app):
        assert "refused the result" in gateway.outcome("bad")["failed"]
        assert gateway.outcome("good-1") == {"succeeded": {"json": "good-1"}}
        assert gateway.outcome("good-2") == {"succeeded": {"json": "good-2"}}


def test_a_cancel_interrupts_async_handlers_and_signals_threads(gateway: FakeGateway, app: Bellwether) -> None:
    started = Runs()

    @app.kind("async")
    async def waits(job: Job) -> None:
        started.add(job.id)
        await asyncio.sleep(60)

    @app.kind("thread")
    def polls(job: Job) -> None:
        started.add(job.id)
        assert job.wait_stopped(60)
        job.check()

    with running_worker(app):
        gateway.deliver("a", "async")
        gateway.deliver("t", "thread")
        eventually(lambda: len(started.jobs) == 2)
        gateway.stop("a", "cancelled")
        gateway.stop("t", "cancelled")
        assert gateway.outcome("a") == {"failed": "stopped: cancelled"}
        assert gateway.outcome("t") == {"failed": "Stopped: cancelled"}


def test_the_outcome_of_an_attempt_that_is_over_is_dropped(gateway: FakeGateway, app: Bellwether) -> None:
    started, reasons = Runs(), Runs()

    @app.kind("thread")
    def polls(job: Job) -> None:
        started.add(job.id)
        assert job.wait_stopped(60)
        reasons.add(str(job.stop_reason))

    with running_worker(app):
        gateway.deliver("t", "thread")
        eventually(lambda: started.jobs)
        gateway.stop("t", "closed")
        eventually(lambda: reasons.jobs == ["closed"])
        eventually(lambda: gateway.bodies("poll")[-1]["running"] == [])
    assert gateway.bodies("finish") == []


def test_heartbeats_carry_reports_and_renew_only_with_a_sign_of_life(gateway: FakeGateway, app: Bellwether) -> None:
    release = threading.Event()

    @app.kind("reports")
    def reports(job: Job) -> None:
        job.progress(40, "half")
        job.checkpoint(b"here")
        release.wait(20)

    @app.kind("silent")
    def silent() -> None:
        release.wait(20)

    @app.kind("renews", auto_renew=True)
    def renews() -> None:
        release.wait(20)

    def beats(job: str) -> list[Document]:
        return [one for body in gateway.bodies("heartbeat") for one in body["running"] if one["job"] == job]

    with running_worker(app, session_timeout=3):
        gateway.deliver("r", "reports")
        gateway.deliver("s", "silent")
        gateway.deliver("n", "renews")
        gateway.deliver("never", "renews", auto_renew=False)
        gateway.deliver("always", "silent", auto_renew=True)
        report = eventually(lambda: beats("r"))[0]
        eventually(lambda: len(beats("n")) >= 3 and len(beats("always")) >= 3)
        release.set()
        gateway.outcome("s")
    assert (report["percent"], report["message"]) == (40, "half")
    assert base64.b64decode(report["checkpoint"]) == b"here"
    assert len(beats("r")) == 1
    assert beats("s") == []
    assert beats("never") == [], "the option of the job replaces that of its kind"


def test_a_report_in_a_lost_heartbeat_is_sent_again(gateway: FakeGateway, app: Bellwether) -> None:
    release = threading.Event()

    @app.kind("reports")
    def reports(job: Job) -> None:
        job.progress(40, "half")
        release.wait(20)

    def lose_reports(name: str, body: Document) -> tuple[int, Document] | None:
        if name != "heartbeat" or not body["running"] or refused:
            return None
        refused.append(1)
        return 503, problem(503, "saturated")

    refused: list[int] = []
    gateway.refuse = lose_reports
    with running_worker(app, session_timeout=3):
        gateway.deliver("r", "reports")
        eventually(lambda: len([body for body in gateway.bodies("heartbeat") if body["running"]]) == 2)
        release.set()
        gateway.outcome("r")
    assert refused == [1]
    assert [body["running"][0]["percent"] for body in gateway.bodies("heartbeat") if body["running"]] == [40, 40]


def test_a_short_lease_is_renewed_in_time(gateway: FakeGateway, app: Bellwether) -> None:
    release = threading.Event()

    @app.kind("renews", auto_renew=True)
    def renews() -> None:
        release.wait(20)

    with running_worker(app, session_timeout=30):
        gateway.deliver("n", "renews", lease="600ms")
        eventually(lambda: sum(bool(body["running"]) for body in gateway.bodies("heartbeat")) >= 4, within=5)
        release.set()
        gateway.outcome("n")


def test_the_checkpoint_of_the_last_attempt_is_read(gateway: FakeGateway, app: Bellwether) -> None:
    @app.kind("resume")
    def resume(job: Job) -> Any:
        progress = job.facts.progress
        return [(job.last_checkpoint or b"").decode(), job.attempt, progress and progress.percent]

    checkpoint = base64.b64encode(b"page-3").decode()
    gateway.deliver("r", "resume", attempt=2, checkpoint=checkpoint, progress={"percent": 30, "message": ""})
    with running_worker(app):
        assert gateway.outcome("r") == {"succeeded": {"json": ["page-3", 2, 30]}}


def test_a_drain_lets_jobs_end_and_hands_back_the_rest(gateway: FakeGateway, app: Bellwether) -> None:
    started, release = Runs(), threading.Event()

    @app.kind("ends")
    def ends(job: Job) -> str:
        started.add(job.id)
        release.wait(20)
        return "ended"

    @app.kind("hangs")
    async def hangs(job: Job) -> None:
        started.add(job.id)
        await asyncio.sleep(60)

    with running_worker(app, drain_grace=2.0) as worker:
        gateway.deliver("e", "ends")
        gateway.deliver("h", "hangs")
        eventually(lambda: len(started.jobs) == 2)
        worker.stop()
        eventually(lambda: gateway.drained)
        gateway.deliver("n", "ends")
        release.set()
        assert gateway.outcome("e") == {"succeeded": {"json": "ended"}}
        eventually(lambda: gateway.left)
    assert set(gateway.ended) == {"e"}, "a job that is handed back has not failed, and no job starts in a drain"
    assert sorted(started.jobs) == ["e", "h"]


def test_exceptions_in_a_process_become_the_same_outcomes(gateway: FakeGateway, app: Bellwether) -> None:
    app.kind("raise", process=True)(handlers.raises)
    names = ("fails", "own", "exits", "invalid", "later")
    with running_worker(app, processes=2):
        for name in names:
            gateway.deliver(name, "raise", {"name": name})
        gateway.deliver("unfit", "raise", {"unknown": 1})
        assert gateway.outcome("fails") == {"failed": "ValueError: broken"}
        assert gateway.outcome("own")["failed"].endswith("OwnError: 5 own")
        assert gateway.outcome("exits")["failed"].endswith("SystemExit: 3")
        assert gateway.outcome("invalid") == {"invalid": "no address"}
        assert gateway.outcome("later") == {"retry_later": "5m"}
        assert "does not match" in gateway.outcome("unfit")["invalid"]


def test_the_log_of_a_failed_attempt_has_the_frames_of_the_handler_only(
    gateway: FakeGateway, app: Bellwether, caplog: pytest.LogCaptureFixture
) -> None:
    @app.kind("plain")
    def plain() -> None:
        handlers.raises("fails")

    @app.kind("async")
    async def asynchronous() -> None:
        handlers.raises("fails")

    app.kind("process", process=True)(handlers.raises)

    app.kind("dies", process=True)(handlers.dies)

    with running_worker(app):
        gateway.deliver("a", "plain")
        gateway.deliver("b", "async")
        gateway.deliver("c", "process", {"name": "fails"})
        gateway.deliver("d", "dies")
        for job in ("a", "b", "c"):
            assert gateway.outcome(job) == {"failed": "ValueError: broken"}
        assert "ended with code 7" in str(gateway.outcome("d"))
    record = {entry.args[0]: entry for entry in caplog.records if isinstance(entry.args, tuple) and entry.exc_info}

    def functions(job: str) -> list[str]:
        exc_info = record[job].exc_info
        assert exc_info is not None
        return [frame.name for frame in traceback.extract_tb(exc_info[2])]

    assert (functions("a"), functions("b")) == (["plain", "raises"], ["asynchronous", "raises"])
    # The frames of another process are text, and a process that died had none.
    assert (functions("c"), functions("d")) == ([], [])
    text = logging.Formatter().format(record["c"])
    assert 'handlers.py", line ' in text
    assert "in raises" in text
    assert text.endswith("ValueError: broken")
    for job in ("c", "d"):
        assert not re.search(r"bellwether[/\\]worker", logging.Formatter().format(record[job]))


def test_with_processes_all_plain_functions_leave_the_process_and_async_ones_stay(
    gateway: FakeGateway, app: Bellwether
) -> None:
    app.kind("plain", whole=True)(handlers.where)
    app.kind("async", whole=True)(handlers.where_async)
    gateway.deliver("p", "plain")
    gateway.deliver("a", "async")

    def terminate() -> None:
        try:
            eventually(lambda: {"p", "a"} <= set(gateway.ended))
        finally:
            os.kill(os.getpid(), SIGTERM)

    terminates = threading.Thread(target=terminate)
    terminates.start()
    app.run(slots=2, processes=True)
    terminates.join()
    assert gateway.outcome("p")["succeeded"]["json"] != os.getpid()
    assert gateway.outcome("a")["succeeded"]["json"] == os.getpid()
    assert gateway.left


def test_a_worker_without_handlers_or_slots_is_refused(app: Bellwether) -> None:
    with pytest.raises(InvalidInput, match="no kinds"):
        Worker(app)

    @app.kind("count")
    def count() -> None: ...

    with pytest.raises(InvalidInput, match="slots"):
        Worker(app, slots=0)
    with pytest.raises(InvalidInput, match="two handlers"):

        @app.kind("count")
        def other() -> None: ...

    with pytest.raises(InvalidInput, match="top level"):
        Worker(app, processes=2)


def test_a_token_that_is_refused_ends_the_worker(gateway: FakeGateway, app: Bellwether) -> None:
    from bellwether import AccessDenied

    @app.kind("count")
    def count() -> None: ...

    gateway.refuse = lambda _name, _body: (403, problem(403, "forbidden"))
    with pytest.raises(AccessDenied):
        Worker(app).run()
