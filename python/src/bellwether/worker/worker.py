"""A worker: four loops that share a table of attempts.

==================== ===========================================================================================
loop                 task
==================== ===========================================================================================
poll                 lists what runs; starts what the gateway delivers, stops what it stops
heartbeat            renews leases, sends progress and checkpoints, and shows that the worker lives
finish               sends outcomes, many in one request, until each is answered
end                  waits for a signal, `stop`, or a drain by the gateway; then drains and deregisters
==================== ===========================================================================================

A lost answer is repaired by the next call of the same loop. When the gateway does not know the worker, it registers again with
everything that it runs; the attempts that the gateway does not take over are stopped and their outcomes dropped.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import socket
import threading
from collections.abc import Callable, Coroutine, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from ..errors import ApiError, InvalidInput
from ..exchange import Addresses, Call
from ..values import Duration, duration_text, seconds_of
from . import protocol
from .executor import Executor
from .finisher import Finisher
from .link import Link
from .processes import Processes, check_importable
from .protocol import Attempt, Beat, Polled, Settings
from .table import Entry, Table

if TYPE_CHECKING:
    from ..application import Application

log = logging.getLogger("bellwether.worker")

LONGEST_POLL = 20
REPORT_WITHIN = 0.5
"""Seconds within which progress is sent, so that a console shows it live."""
STOP_GRACE = 1.0
"""Seconds for handlers to end after the stop signal of a drain, before their jobs are handed back."""
LEAVE_WITHIN = 10.0
IDLE_PAUSE = 0.1
"""Pause after a poll that is answered early without news."""
ERROR_PAUSE = 5.0
"""Pause after an answer that repetition alone does not repair, such as a revoked token."""


class Worker:
    """Runs the handlers of an application until it is stopped."""

    def __init__(
        self,
        app: Application,
        *,
        slots: int | None = None,
        processes: bool | int = False,
        node_id: str | None = None,
        tags: Sequence[str] = (),
        drain_grace: Duration = 30,
        session_timeout: Duration = 30,
    ) -> None:
        kinds = list(app.kinds)
        if not kinds:
            raise InvalidInput("the application has no kinds: declare a handler with @app.kind")
        processors = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        slots = max(processors, 4) if slots is None else slots
        if slots < 1:
            raise InvalidInput(f"slots must be at least 1, not {slots}")
        self._app = app
        self._slots = slots
        self._all_in_processes = bool(processes)
        self._size = processes if processes and processes is not True else processors
        self._drain_grace = seconds_of(drain_grace)
        for kind in kinds:
            if kind.process or (processes and not kind.is_async):
                check_importable(kind)
        node_id = node_id or f"{socket.gethostname()}-{os.getpid()}"
        declared = [_declared(kind.name, kind.lease, kind.concurrency) for kind in kinds]
        self._settings = Settings(node_id, declared, slots, tuple(tags), seconds_of(session_timeout))
        self._renewing = {kind.name for kind in kinds if kind.auto_renew}
        self._table = Table()
        self._tasks: dict[asyncio.Task[None], Entry] = {}
        self.registered = threading.Event()
        """Set once the gateway knows the worker."""
        self._loop: asyncio.AbstractEventLoop | None = None
        self._end: asyncio.Event | None = None
        self._stop_early = False

    def stop(self) -> None:
        """Drains the worker, from any thread. `run` returns when it is drained."""
        self._stop_early = True
        loop, end = self._loop, self._end
        if loop is not None and end is not None:
            with contextlib.suppress(RuntimeError):  # the loop is closed: the worker has ended
                loop.call_soon_threadsafe(end.set)

    def run(self) -> None:
        """Runs until SIGTERM, SIGINT or `stop`; a second signal ends the process immediately."""
        asyncio.run(self._run_with_signals())

    async def _run_with_signals(self) -> None:
        with _signals(self.stop):
            await self.serve()

    async def serve(self) -> None:
        """Runs on the current event loop until `stop`, or until its task is cancelled: both drain the worker."""
        self._loop, self._end = asyncio.get_running_loop(), asyncio.Event()
        self._changed = asyncio.Event()
        self._executor = Executor(self._app.kinds, Processes(self._size), all_in_processes=self._all_in_processes)
        if self._stop_early:
            return
        try:
            async with self._app.async_client() as http:
                self._link = Link(http, Addresses(self._app.addresses.urls), self._settings, self._table)
                await self._work(self._end)
        finally:
            self._executor.close()

    async def _work(self, end: asyncio.Event) -> None:
        if not await _first(self._link.register(), end):
            return
        self.registered.set()
        self._finisher = Finisher(self._link, self._table)
        loops = [
            asyncio.create_task(loop, name=f"bellwether-{name}")
            for name, loop in (
                ("poll", self._poll()),
                ("heartbeat", self._heartbeat()),
                ("finish", self._finisher.run()),
            )
        ]
        ending = asyncio.create_task(end.wait())
        try:
            done, _ = await asyncio.wait([*loops, ending], return_when=asyncio.FIRST_COMPLETED)
            for task in done - {ending}:
                task.result()  # a loop ends only by an error
            await self._drain()
        except asyncio.CancelledError:
            await self._drain()
            raise
        finally:
            for task in (*loops, ending, *self._tasks):
                task.cancel()
            await asyncio.gather(*loops, ending, *self._tasks, return_exceptions=True)

    # Loops

    async def _poll(self) -> None:
        while True:
            started = asyncio.get_running_loop().time()
            answer = await self._call("poll", self._next_poll)
            if answer is None:
                continue
            news = self._stops(answer) | self._starts(answer)
            if not news and asyncio.get_running_loop().time() - started < IDLE_PAUSE:
                await asyncio.sleep(IDLE_PAUSE)

    def _next_poll(self) -> Call[Polled]:
        wait = int(min(LONGEST_POLL, max(1.0, self._link.session_timeout / 3)))
        free = self._slots - len(self._table)
        return protocol.poll(self._link.key, self._table.listed(), free, wait)

    async def _heartbeat(self) -> None:
        pause = 0.0
        while True:
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(self._changed.wait(), pause)
                await asyncio.sleep(min(REPORT_WITHIN, pause))  # collects the reports of several attempts
            self._changed.clear()
            beats, taken = self._table.beats()
            answer = await self._beat(beats)
            if answer is None:
                self._table.restore(taken)
            else:
                self._stops(answer)
            lease = self._table.shortest_lease()
            pause = min(self._link.session_timeout / 3, self._link.session_timeout if lease is None else lease / 3)

    async def _beat(self, beats: list[Beat]) -> Polled | None:
        """A heartbeat that is not answered in time is built again, with newer reports."""
        try:
            call = protocol.heartbeat(self._link.key, beats, max(1.0, self._link.session_timeout / 3))
            return await self._link.once(call)
        except ApiError as error:
            log.warning("the gateway did not confirm the heartbeat of the worker: %s", error)
            await asyncio.sleep(min(1.0, self._link.session_timeout / 10))
            return None

    async def _call(self, name: str, build: Callable[[], Call[Polled]]) -> Polled | None:
        try:
            return await self._link.until_answered(name, build)
        except ApiError as error:
            # The error is the gateway's answer.
            log.error("the gateway answered the call %s of the worker with an error: %s", name, error)  # noqa: TRY400
            await asyncio.sleep(ERROR_PAUSE)
            return None

    # Attempts

    def _starts(self, answer: Polled) -> bool:
        """Starts what was delivered. Returns whether there was a new attempt."""
        started = [self._start(attempt) for attempt in answer.attempts]
        return any(started)

    def _start(self, attempt: Attempt) -> bool:
        """Starts an attempt, unless it was delivered before. In a drain it is left for the hand-back."""
        renew = attempt.facts.kind in self._renewing if attempt.auto_renew is None else attempt.auto_renew
        entry = None if self._link.draining else self._table.delivered(attempt, renew=renew)
        if entry is None:
            return False
        entry.job.on_report = self._reported
        task = asyncio.create_task(self._run(entry), name=f"bellwether-job-{attempt.facts.id}")
        self._tasks[task] = entry
        task.add_done_callback(lambda task: self._tasks.pop(task, None))
        if renew:
            self._changed.set()
        return True

    def _reported(self) -> None:
        """Called on the thread of a handler."""
        loop = self._loop
        if loop is not None:
            with contextlib.suppress(RuntimeError):  # the loop is closed: the worker has ended
                loop.call_soon_threadsafe(self._changed.set)

    async def _run(self, entry: Entry) -> None:
        outcome = await self._executor.run(entry)
        if "succeeded" not in outcome and entry.job.stop_reason == "drain":
            return  # handed back when the worker leaves: a drain is not a failure of the job
        if self._table.finished(entry.attempt.key, outcome):
            self._finisher.wake()

    def _stops(self, answer: Polled) -> bool:
        """Stops attempts. Returns whether there was one that did not stop already."""
        news = False
        for stop in answer.stops:
            entry = self._table.stop(stop)
            if entry is not None and not entry.job.cancelled:
                log.info("the gateway stops job %s, attempt %d: %s", entry.job.id, entry.job.attempt, stop.reason)
                self._interrupt(entry, stop.reason)
                news = True
        if answer.draining and self._end is not None and not self._end.is_set():
            log.info("the gateway drains this worker")
            self._end.set()
        return news

    def _interrupt(self, entry: Entry, reason: str) -> None:
        """Signals a handler, and interrupts it once if it is an async function."""
        first = not entry.job.cancelled
        entry.job.stop(reason)
        kind = self._app.kinds.get(entry.job.kind)
        if first and kind is not None and kind.is_async:
            for task, running in list(self._tasks.items()):
                if running is entry:
                    task.cancel()

    # End

    async def _drain(self) -> None:
        log.info("the worker drains: it still runs %d jobs", len(self._table.running))
        self._link.draining = True
        with contextlib.suppress(ApiError, asyncio.TimeoutError):
            drain = self._link.until_answered("drain", lambda: protocol.drain(self._link.key))
            await asyncio.wait_for(drain, max(1.0, min(LEAVE_WITHIN, self._drain_grace)))
        if not await self._quiet(self._drain_grace):
            for entry in self._table.running:
                self._interrupt(entry, "drain")
            if not await self._quiet(STOP_GRACE):
                log.warning("the worker hands back %d jobs that still run", len(self._table.running))
        await self._link.leave(LEAVE_WITHIN)

    async def _quiet(self, within: float) -> bool:
        """Waits until no handler runs and every outcome is answered."""
        deadline = asyncio.get_running_loop().time() + within
        while self._tasks or len(self._table):
            left = deadline - asyncio.get_running_loop().time()
            if left <= 0:
                return False
            waits: list[asyncio.Future[Any]] = [*self._tasks]
            if not waits:
                if not await self._finisher.flushed(left):
                    return False
                return not self._tasks
            await asyncio.wait(waits, timeout=left, return_when=asyncio.FIRST_COMPLETED)
        return True


MIN_LEASE = 1
MAX_LEASE = 7 * 24 * 3600
"""The bounds of a lease in seconds."""


def _declared(name: str, lease: Any, concurrency: int | None) -> dict[str, Any]:
    found: dict[str, Any] = {"kind": name}
    if lease is not None:
        if not MIN_LEASE <= seconds_of(lease) <= MAX_LEASE:
            raise InvalidInput(f"kind {name}: lease must be 1s to 7d, not {duration_text(lease)}")
        found["lease"] = duration_text(lease)
    if concurrency is not None:
        found["concurrency"] = concurrency
    return found


async def _first(work: Coroutine[Any, Any, Any], end: asyncio.Event) -> bool:
    """Runs `work` unless the end comes first. Returns whether it was done."""
    task, ending = asyncio.ensure_future(work), asyncio.ensure_future(end.wait())
    try:
        await asyncio.wait([task, ending], return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            task.result()
            return True
        return False
    finally:
        task.cancel()
        ending.cancel()
        await asyncio.gather(task, ending, return_exceptions=True)


@contextlib.contextmanager
def _signals(stop: Callable[[], None]) -> Iterator[None]:
    """Stops on the first SIGTERM or SIGINT, and ends the process on the second."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    loop = asyncio.get_running_loop()
    seen: list[int] = []

    def received(number: int) -> None:
        if seen:
            os._exit(128 + number)
        seen.append(number)
        log.info("the worker received signal %d and drains; a second signal ends the process immediately", number)
        stop()

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, received, number)
    try:
        yield
    finally:
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.remove_signal_handler(number)
