"""Daemon threads for plain functions. Unlike those of `concurrent.futures`, they do not keep the process alive after a drain."""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import Callable
from typing import Any

_Work = tuple[Callable[[], Any], "asyncio.Future[Any]", asyncio.AbstractEventLoop]


class Threads:
    """Runs functions, each on an idle thread or on a new one."""

    def __init__(self) -> None:
        self._idle: list[queue.SimpleQueue[_Work | None]] = []
        self._lock = threading.Lock()
        self._closed = False

    def run(self, function: Callable[[], Any]) -> asyncio.Future[Any]:
        """Starts a function. Cancelling the future does not stop the thread."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Any] = loop.create_future()
        with self._lock:
            inbox = self._idle.pop() if self._idle else None
        if inbox is None:
            inbox = queue.SimpleQueue()
            threading.Thread(target=self._serve, args=(inbox,), name="bellwether-handler", daemon=True).start()
        inbox.put((function, future, loop))
        return future

    def _serve(self, inbox: queue.SimpleQueue[_Work | None]) -> None:
        while (work := inbox.get()) is not None:
            function, future, loop = work
            try:
                step: tuple[Any, BaseException | None] = (function(), None)
            except BaseException as error:  # noqa: BLE001 - a handler may raise SystemExit; it is an outcome, too
                step = (None, error)
            with self._lock:
                if not self._closed:
                    self._idle.append(inbox)
                closed = self._closed
            try:
                loop.call_soon_threadsafe(_settle, future, *step)
            except RuntimeError:
                return  # the loop is closed: the worker has ended
            del work, function, future, loop, step
            if closed:
                return

    def close(self) -> None:
        """Ends idle threads; the others end after their function."""
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, []
        for inbox in idle:
            inbox.put(None)


def _settle(future: asyncio.Future[Any], result: Any, error: BaseException | None) -> None:
    if future.done():
        return  # cancelled: the attempt is over
    if error is None:
        future.set_result(result)
    elif isinstance(error, Exception):
        future.set_exception(error)
    else:
        # StopIteration and exits cannot be raised in a future.
        future.set_exception(RuntimeError(f"{type(error).__name__}: {error}"))
