"""A pool of processes for CPU-bound handlers.

Each process runs one attempt at a time and stays for the next one. Progress and the stop signal travel over its pipe. A process
that dies fails only its attempt. One that ignores the stop signal is killed, so a stopped attempt does not keep a CPU.
"""

from __future__ import annotations

import multiprocessing
import os
import pickle
import queue
import signal
import threading
import time
from multiprocessing.connection import Connection
from typing import Any

from ..errors import BellwetherError, InvalidInput
from ..job import Job, JobFacts
from ..kinds import Kind
from .frames import text_of_handler

STOP_GRACE = 3.0
"""Seconds between the stop signal and the kill of the process."""
CHECK_STOP = 0.1
"""Interval at which a waiting thread looks at the stop signal; messages of the process wake it immediately."""


class ProcessDied(BellwetherError):
    """The process of a handler ended before the handler."""


class HandlerTraceback(Exception):
    """The cause of an error that a process raised: its traceback there, as text, because frames cannot be sent."""

    def __str__(self) -> str:
        return f'\n"""\n{self.args[0].rstrip()}\n"""'


class Processes:
    """At most `size` processes, started when they are needed."""

    def __init__(self, size: int) -> None:
        self._context = multiprocessing.get_context("spawn")
        self._free = threading.Semaphore(size)
        self._lock = threading.Lock()
        self._idle: list[Process] = []
        self._all: set[Process] = set()
        self._closed = False

    def run(self, kind: Kind, payload: Any, job: Job) -> Any:
        """Runs a handler in a process, and returns what it returned or raises what it raised. Called on a thread."""
        with self._free:
            job.check()
            process = self._take()
            try:
                return process.run(kind, payload, job)
            finally:
                self._give_back(process)

    def _take(self) -> Process:
        with self._lock:
            if self._closed:
                raise ProcessDied("the worker has ended")
            if self._idle:
                return self._idle.pop()
            process = Process(self._context)
            self._all.add(process)
            return process

    def _give_back(self, process: Process) -> None:
        with self._lock:
            if process.usable and not self._closed:
                self._idle.append(process)
                return
            self._all.discard(process)
        process.kill()

    def close(self) -> None:
        """Kills all processes."""
        with self._lock:
            self._closed = True
            processes, self._all = list(self._all), set()
        for process in processes:
            process.kill()


class Process:
    """One process of the pool."""

    def __init__(self, context: multiprocessing.context.SpawnContext) -> None:
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(theirs,), name="bellwether-handler", daemon=True)
        self._process.start()
        theirs.close()
        self.usable = True

    def run(self, kind: Kind, payload: Any, job: Job) -> Any:
        self.usable = False
        kill_at: float | None = None
        try:
            self._pipe.send(("run", kind, payload, job.facts))
            while True:
                if self._pipe.poll(CHECK_STOP):
                    name, *values = self._pipe.recv()
                    if name == "report":
                        job.relay(values[0])
                        continue
                    break
                if kill_at is None and job.cancelled:
                    self._pipe.send(("stop", job.stop_reason))
                    kill_at = time.monotonic() + STOP_GRACE
                if kill_at is not None and time.monotonic() > kill_at:
                    self.kill()
                    raise ProcessDied("the handler ignored the stop signal; its process was killed")
        except (EOFError, OSError):
            self._process.join(1.0)
            # The end of the pipe says no more than the exit code.
            raise ProcessDied(f"the process of the handler ended with code {self._process.exitcode}") from None
        self.usable = True
        if name == "raised":
            raised, text = values
            raise raised from HandlerTraceback(text)
        return values[0]

    def kill(self) -> None:
        self.usable = False
        self._process.kill()


def check_importable(kind: Kind) -> None:
    """Raises `InvalidInput` if the processes of the pool cannot find the handler."""
    try:
        pickle.dumps(kind)
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        name = kind.handler.__qualname__
        raise InvalidInput(f"kind {kind.name}: {name} must be at the top level of a module: {error}") from error


class _Current:
    """The attempt that runs in this process."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.job: Job | None = None


def _serve(pipe: Connection[Any, Any]) -> None:
    """The main function of a process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the worker, which drains
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    runs: queue.SimpleQueue[tuple[Kind, Any, JobFacts]] = queue.SimpleQueue()
    current = _Current()
    threading.Thread(target=_receive, args=(pipe, runs, current), daemon=True).start()
    sending = threading.Lock()

    def send(*message: Any) -> None:
        with sending:
            pipe.send(message)

    while True:
        kind, payload, facts = runs.get()

        job = Job(facts)
        job.on_report = lambda job=job: send("report", job.sign.take())
        with current.lock:
            current.job = job
        try:
            positional, named = kind.arguments(payload, job)
            message: tuple[Any, ...] = ("returned", kind.handler(*positional, **named))
        except BaseException as error:  # noqa: BLE001 - a handler may raise SystemExit; it is an outcome, too
            message = ("raised", _portable(error), text_of_handler(error))
        with current.lock:
            current.job = None
        try:
            send(*message)
        except (pickle.PicklingError, AttributeError, TypeError) as error:
            unsent = TypeError(f"the result cannot be sent between processes: {error}")
            send("raised", unsent, text_of_handler(unsent))


def _receive(
    pipe: Connection[Any, Any], runs: queue.SimpleQueue[tuple[Kind, Any, JobFacts]], current: _Current
) -> None:
    while True:
        try:
            name, *values = pipe.recv()
        except (EOFError, OSError):
            os._exit(1)  # the worker has ended: so do its handlers
        except Exception as error:  # noqa: BLE001 - the handler's module cannot be imported
            unloaded = RuntimeError(f"the handler cannot be loaded: {error!r}")
            pipe.send(("raised", unloaded, text_of_handler(error)))
            continue
        if name == "run":
            runs.put((values[0], values[1], values[2]))
            continue
        with current.lock:
            if current.job is not None:
                current.job.stop(values[0])


def _portable(error: BaseException) -> Exception:
    """Returns the error, or its description if it cannot be sent between processes."""
    try:
        pickle.loads(pickle.dumps(error))  # noqa: S301 - our own bytes
    except Exception:  # noqa: BLE001 - an own class of exception may fail in any way
        return RuntimeError(f"{type(error).__name__}: {error}")
    return error if isinstance(error, Exception) else RuntimeError(f"{type(error).__name__}: {error}")
