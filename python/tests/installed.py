"""Not a test by itself: `cargo xtask python` runs it, and checks its types, where only the wheel is installed."""

from __future__ import annotations

from importlib.metadata import metadata
from importlib.resources import files

import bellwether
from bellwether import Bellwether, Job

app = Bellwether("http://127.0.0.1:8080")


@app.kind("mail", max_attempts=6, timeout=30)
def mail(to: str, job: Job) -> dict[str, str]:
    job.progress(50, "sending")
    return {"sent": to}


identity: str = app.handle("mail-1").id

assert "site-packages" in str(bellwether.__file__), "the package is not that of the wheel"
assert files("bellwether").joinpath("py.typed").is_file(), "the wheel has no marker of types"
assert metadata("bellwether")["Requires-Python"] == ">=3.10"
