"""Kills and cuts: nothing is lost, and every run has its own attempt, opened by a recorded cause."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from eventually import eventually
from network import Proxy
from programs import Note, notes, serves, worker_process

from bellwether import Bellwether
from bellwether.testing import DevServer, dev_server


@pytest.fixture
def own_server(command: str, tmp_path: Path) -> Iterator[DevServer]:
    """A server that a test may kill: its data is on disk."""
    with dev_server(command, data_dir=tmp_path / "data", arguments=["--session-timeout", "4s"]) as server:
        yield server


def each_run_has_its_attempt(found: list[Note]) -> None:
    """No two runs share a fencing token: an attempt ran at most once."""
    tokens = [(note.job, note.token) for note in found]
    assert len(tokens) == len(set(tokens)), found


def test_a_killed_worker_loses_its_job_once(server: DevServer, app: Bellwether, tmp_path: Path) -> None:
    log, release = tmp_path / "log", tmp_path / "release"
    with worker_process(server.url, "killed", "--session-timeout", "3s") as process:
        job = app.submit("py-hold", log=str(log), release=str(release))
        eventually(lambda: notes(log))
        process.send_signal(signal.SIGKILL)
        process.wait(10)
    with worker_process(server.url, "survivor"):
        eventually(lambda: len(notes(log)) == 2, within=60)
        release.touch()
        job.result(timeout=60)
    view = job.show()
    assert (view.state, view.losses, view.failures) == ("succeeded", 1, 0)
    each_run_has_its_attempt(notes(log))
    assert len(notes(log)) == 2


def test_a_killed_gateway_loses_no_job(own_server: DevServer, tmp_path: Path) -> None:
    log = tmp_path / "log"
    with (
        Bellwether(own_server.url, retry_for=60) as app,
        worker_process(own_server.url, "stays", "--session-timeout", "6s"),
    ):
        serves(app, "py-note")
        before = app.submit_many([app.job("py-note", log=str(log)) for _ in range(200)])
        eventually(lambda: len(notes(log)) > 20)
        own_server.restart()
        after = app.submit_many([app.job("py-note", log=str(log)) for _ in range(50)])
        views = [job.wait(timeout=90) for job in (*before, *after)]
    assert {view.state for view in views} == {"succeeded"}
    runs = notes(log)
    each_run_has_its_attempt(runs)
    for view in views:
        count = sum(run.job == view.id for run in runs)
        assert 1 <= count <= view.attempt, "each further run has an attempt of its own"


def test_a_cut_shorter_than_the_timeout_interrupts_nothing(server: DevServer, app: Bellwether, tmp_path: Path) -> None:
    log, release = tmp_path / "log", tmp_path / "release"
    proxy = Proxy(server.http_port)
    try:
        with worker_process(proxy.url, "cut", "--session-timeout", "20s"):
            serves(app, "py-hold")
            held = app.submit("py-hold", log=str(log), release=str(release))
            eventually(lambda: notes(log))
            proxy.cut()
            release.touch()
            eventually(lambda: notes(log, "end"))
            proxy.heal()
            assert held.result(timeout=30) == 1
            proxy.drop_answers(3, b"/poll")
            jobs = app.submit_many([app.job("py-note", log=str(log)) for _ in range(50)])
            assert [job.result(timeout=60) for job in jobs] == [1] * 50
            proxy.drop_answers(3, b"/finish")
            jobs = app.submit_many([app.job("py-note", log=str(log)) for _ in range(50)])
            assert [job.result(timeout=60) for job in jobs] == [1] * 50
    finally:
        proxy.close()
    assert len(notes(log)) == 101, "each job ran once"


def test_the_loss_of_a_cut_is_excused_once_the_worker_has_registered_again(
    server: DevServer, app: Bellwether, tmp_path: Path
) -> None:
    log, release = tmp_path / "log", tmp_path / "release"
    proxy = Proxy(server.http_port)
    try:
        with worker_process(proxy.url, "away", "--session-timeout", "2s"):
            serves(app, "py-hold")
            job = app.submit("py-hold", log=str(log), release=str(release))
            eventually(lambda: notes(log))
            proxy.cut()
            eventually(lambda: job.show().losses == 1)
            proxy.heal()
            eventually(lambda: len(notes(log)) == 2)
            release.touch()
            job.result(timeout=60)
    finally:
        proxy.close()
    view = job.show()
    assert (view.state, view.losses, view.failures) == ("succeeded", 0, 0)
    each_run_has_its_attempt(notes(log))
