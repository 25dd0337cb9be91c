"""Sends the outcomes of attempts until the gateway has answered each of them."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Sequence

from ..errors import ApiError
from . import protocol
from .link import Link, is_end, is_fenced, is_refused
from .protocol import Ended, Finished
from .table import Table

log = logging.getLogger("bellwether.worker")

ERROR_PAUSE = 5.0


class Finisher:
    """One request at a time; outcomes that arrive in the meantime share the next one."""

    def __init__(self, link: Link, table: Table) -> None:
        self._link = link
        self._table = table
        self._wake = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()

    def wake(self) -> None:
        """There is a new outcome in the table."""
        self._idle.clear()
        self._wake.set()

    async def flushed(self, within: float) -> bool:
        """Waits until every outcome in the table is answered."""
        with contextlib.suppress(asyncio.TimeoutError):
            await asyncio.wait_for(self._idle.wait(), within)
        return self._idle.is_set()

    async def run(self) -> None:
        while True:
            batch = self._table.outcomes()
            if batch:
                await self._send(batch)
                continue
            self._idle.set()
            self._wake.clear()
            await self._wake.wait()

    async def _send(self, batch: Sequence[Finished]) -> None:
        """An outcome is final, so it is repeated unchanged until it is answered."""
        try:
            ends = await self._link.until_answered(
                "finish", lambda: protocol.finish(self._link.key, self._named(batch))
            )
        except ApiError as error:
            await self._refused(batch, error)
            return
        for finished, end in zip(batch, ends, strict=True):
            self._ended(finished, end)

    def _named(self, batch: Sequence[Finished]) -> list[Finished]:
        """A takeover between two tries gives the attempts new tokens."""
        return [Finished(self._table.named(finished.facts), finished.outcome) for finished in batch]

    async def _refused(self, batch: Sequence[Finished], error: ApiError) -> None:
        if len(batch) > 1 and is_refused(error):
            for finished in batch:  # finds the one that the gateway does not accept
                await self._send([finished])
        elif len(batch) == 1 and (is_fenced(error) or is_end(error)):
            self._ended(batch[0], Ended("fenced" if is_fenced(error) else "unknown", error.problem))
        elif len(batch) == 1 and is_refused(error):
            self._replace(batch[0], error)
        else:
            log.error("the gateway answered the finish of attempts with an error: %s", error)
            await asyncio.sleep(ERROR_PAUSE)

    def _replace(self, finished: Finished, error: ApiError) -> None:
        facts = finished.facts
        log.error("the gateway refused the outcome of job %s, attempt %d: %s", facts.id, facts.attempt, error)
        if "succeeded" in finished.outcome:
            outcome = protocol.failed(f"the gateway refused the result: {error}")
            self._table.replace_outcome((facts.id, facts.fencing_token), outcome)
        else:
            self._table.ended((facts.id, facts.fencing_token))  # its lease ends the attempt

    def _ended(self, finished: Finished, end: Ended) -> None:
        facts = finished.facts
        if end.status != "closed":
            reason = "" if end.problem is None else f": {end.problem.detail}"
            details = (facts.id, facts.attempt, end.status, reason)
            log.warning("the gateway did not confirm the outcome of job %s, attempt %d: %s%s", *details)
        self._table.ended((facts.id, facts.fencing_token))
