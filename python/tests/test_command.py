"""`python -m bellwether worker` and the server for tests of applications."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from bellwether import Bellwether
from bellwether.testing import DevServerError, dev_server, make_job


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["handlers:nothing"], "is not a Bellwether"),
        (["handlers_that_do_not_exist:app"], "there is no module"),
        (["handlers:app", "--slots", "0"], "slots must be at least 1"),
        (["handlers:app", "--url", "127.0.0.1:8080"], "starts with http"),
    ],
)
def test_a_wrong_argument_is_explained_without_a_traceback(arguments: list[str], message: str) -> None:
    command = [sys.executable, "-m", "bellwether", "worker", *arguments]
    ran = subprocess.run(command, cwd=Path(__file__).parent, capture_output=True, text=True, timeout=30, check=False)
    assert ran.returncode != 0
    assert message in ran.stderr
    assert "Traceback" not in ran.stderr


def test_a_dev_server_ends_with_its_block(command: str) -> None:
    with dev_server(command) as server, Bellwether(server.url) as app:
        assert app.submit("sum", payload=[1, 2]).result(timeout=30) == 3
    with pytest.raises(httpx.ConnectError):
        httpx.get(server.url)


def test_a_dev_server_keeps_its_data_over_a_restart(command: str, tmp_path: Path) -> None:
    with dev_server(command, data_dir=tmp_path / "data") as server, Bellwether(server.url) as app:
        job = app.submit("sum", payload=[1, 2])
        job.result(timeout=30)
        server.restart()
        assert job.show().state == "succeeded"


def test_a_dev_server_that_does_not_start_shows_why(command: str) -> None:
    with pytest.raises(DevServerError, match="unexpected argument"), dev_server(command, arguments=["--wrong"]):
        pass


def test_a_handler_is_tested_without_a_server() -> None:
    job = make_job("mail-1", attempt=2)
    job.progress(50, "sending")
    _, progress, _ = job.sign.take()
    assert (job.id, job.attempt, progress and progress.percent) == ("mail-1", 2, 50)
    for percent, message in ((-1, ""), (101, ""), (1, "x" * 1025)):
        with pytest.raises(ValueError, match=r"percent|message"):
            job.progress(percent, message)
    with pytest.raises(ValueError, match="checkpoint"):
        job.checkpoint(bytes(16 * 1024 + 1))
