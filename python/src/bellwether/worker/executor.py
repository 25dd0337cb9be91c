"""Runs the handler of an attempt: on the event loop, on a thread, or in a process."""

from __future__ import annotations

import asyncio
import functools
import logging

from ..job import Invalid, RetryLater
from ..kinds import Kind, Kinds
from .frames import of_handler
from .processes import Processes
from .protocol import Outcome, failed, outcome_of_error, outcome_of_result
from .table import Entry
from .threads import Threads

log = logging.getLogger("bellwether.worker")


class Executor:
    """Handlers of an application, with their threads and processes."""

    def __init__(self, kinds: Kinds, processes: Processes, *, all_in_processes: bool) -> None:
        self._kinds = kinds
        self._threads = Threads()
        self._processes = processes
        self._all_in_processes = all_in_processes

    def close(self) -> None:
        self._threads.close()
        self._processes.close()

    async def run(self, entry: Entry) -> Outcome:
        """Returns the outcome of an attempt. Cancelling it interrupts an async handler, and abandons another one."""
        attempt, job = entry.attempt, entry.job
        kind = self._kinds.get(attempt.facts.kind)
        if kind is None:
            return failed(f"this worker has no handler for kind {attempt.facts.kind}")
        if attempt.refusal is not None:
            return {"invalid": attempt.refusal}
        try:
            return outcome_of_result(await self._call(kind, entry))
        except asyncio.CancelledError:
            if job.cancelled:
                return failed(f"stopped: {job.stop_reason}")
            return failed("the handler cancelled itself")
        except (Invalid, RetryLater) as outcome:
            log.info("the handler ended job %s, attempt %d: %r", job.id, job.attempt, outcome)
            return outcome_of_error(outcome)
        except Exception as error:
            if job.cancelled:
                facts = (job.id, job.attempt, error)
                log.info("the handler of job %s, attempt %d ended after it was asked to stop: %r", *facts)
                return outcome_of_error(error)
            named = (job.id, job.kind, job.attempt)
            log.warning("the handler of job %s of kind %s failed in attempt %d", *named, exc_info=of_handler(error))
            return outcome_of_error(error)

    async def _call(self, kind: Kind, entry: Entry) -> object:
        if self._in_process(kind):
            run = functools.partial(self._processes.run, kind, entry.attempt.payload, entry.job)
            return await self._threads.run(run)
        positional, named = kind.arguments(entry.attempt.payload, entry.job)
        if kind.is_async:
            return await kind.handler(*positional, **named)
        return await self._threads.run(functools.partial(kind.handler, *positional, **named))

    def _in_process(self, kind: Kind) -> bool:
        return kind.process or (self._all_in_processes and not kind.is_async)
