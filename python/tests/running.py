"""A worker on a thread of the test."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from bellwether import Worker
from bellwether.application import Application


@contextmanager
def running(app: Application, **options: Any) -> Iterator[Worker]:
    """Runs a worker until the end of the block, and fails if it does not drain."""
    worker = Worker(app, **{"slots": 4, "grace": 5.0, **options})
    errors: list[BaseException] = []

    def run() -> None:
        try:
            worker.run()
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        assert worker.registered.wait(20), errors
        yield worker
    finally:
        worker.stop()
        thread.join(30)
    assert not thread.is_alive(), "the worker does not end"
    assert not errors, errors
