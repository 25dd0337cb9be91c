"""Waiting for a condition with a deadline."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def eventually(condition: Callable[[], T | None], within: float = 30.0, every: float = 0.02) -> T:
    """Returns the first value that is true, or fails after the deadline."""
    pause = threading.Event()
    deadline = time.monotonic() + within
    while True:
        value = condition()
        if value:
            return value
        assert time.monotonic() < deadline, f"not within {within} s; last value {value!r}"
        pause.wait(every)
