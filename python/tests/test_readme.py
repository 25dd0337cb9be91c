"""The programs in `python/README.md` and in the README of the repository."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from pathlib import Path

from eventually import eventually

from bellwether import Bellwether
from bellwether.testing import DevServer

README = Path(__file__).parents[1] / "README.md"
ROOT_README = Path(__file__).parents[2] / "README.md"


def test_the_application_of_the_readme_passes_its_own_tests(tmp_path: Path) -> None:
    application, _, tests = re.findall(r"```python\n(.*?)```", README.read_text("utf-8"), re.DOTALL)
    (tmp_path / "my_app.py").write_text(application)
    (tmp_path / "test_my_app.py").write_text(tests)
    # The server that the tests start is the one of this test run: the environment names its binary.
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "--quiet", "test_my_app.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=90,
        check=False,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    assert "2 passed" in run.stdout


def test_the_program_of_the_repository_submits_a_job_and_runs_it(own_server: DevServer, tmp_path: Path) -> None:
    (text,) = re.findall(r"```python\n(.*?)```", ROOT_README.read_text("utf-8"), re.DOTALL)
    address = "http://127.0.0.1:8080"
    assert text.count(address) == 1
    program = tmp_path / "program.py"
    program.write_text(text.replace(address, own_server.url))
    process = subprocess.Popen([sys.executable, program])
    try:
        with Bellwether(own_server.url) as app:
            eventually(lambda: [job.id for job in app.jobs()] == ["mail-1"])
            assert app.result("mail-1", timeout=30) == {"sent": "a@example.org"}
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 0
    finally:
        process.kill()
        process.wait()
