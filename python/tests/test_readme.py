"""The programs in `python/README.md`."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

README = Path(__file__).parents[1] / "README.md"


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
