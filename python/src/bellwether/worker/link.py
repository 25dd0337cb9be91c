"""The connection of a worker to its gateway: registration, repetition, and the change to another gateway."""

from __future__ import annotations

import asyncio
import logging
import random
import time
import uuid
from collections.abc import Callable
from typing import TypeVar

import httpx

from ..errors import ApiError, Conflict, InvalidInput, NotFound, OutcomeUnknown, Unavailable
from ..exchange import Addresses, Call, Done, Exchange
from . import protocol
from .protocol import Registered, Settings
from .table import Table

log = logging.getLogger("bellwether.worker")
T = TypeVar("T")

FIRST_PAUSE = 0.1
LONGEST_PAUSE = 2.0
LEAVE_AFTER = 4.0
"""Seconds without an answer after which it tries another gateway, or a third of the worker's session timeout if that is
shorter. The other gateway takes over what runs, if it is asked before the session of the old one has expired (10 s). A
gateway that refuses the connection is left at once: its process has ended."""


class Link:
    """Sends the worker's calls. All of them may be repeated, so a lost answer is repaired by the next call."""

    def __init__(self, http: httpx.AsyncClient, addresses: Addresses, settings: Settings, table: Table) -> None:
        self.key = str(uuid.uuid4())
        self.session_timeout = settings.session_timeout
        self.worker: str | None = None
        self.draining = False
        """Whether a new registration drains immediately."""
        self._http = http
        self._addresses = addresses
        self._settings = settings
        self._table = table
        self._registering = asyncio.Lock()
        self._registrations = 0
        self._last_answer = time.monotonic()

    async def once(self, call: Call[T]) -> T:
        """Sends a call one time. Raises `Unavailable` or `OutcomeUnknown` if it may be sent again."""
        exchange = Exchange(call, time.monotonic(), retry_for=0.0)
        base = self._addresses.current
        refused = False
        try:
            try:
                response = await self._http.send(exchange.request(self._http, base, {}))
            except httpx.TransportError as error:
                refused = isinstance(error, httpx.ConnectError)
                exchange.failed(error, time.monotonic())
                raise AssertionError("an exchange without time for repetitions raises") from error
            step = exchange.received(response, time.monotonic())
        except (Unavailable, OutcomeUnknown):
            if self._leaves(refused=refused):
                self._addresses.move(base)
            raise
        self._last_answer = time.monotonic()
        assert isinstance(step, Done), "an exchange without time for repetitions raises"  # noqa: S101
        value: T = step.value
        return value

    def _leaves(self, *, refused: bool) -> bool:
        """Whether the next call goes to another gateway, after one that was not answered."""
        silence = time.monotonic() - self._last_answer
        return self.worker is None or refused or silence > min(self.session_timeout / 3, LEAVE_AFTER)

    async def until_answered(self, name: str, build: Callable[[], Call[T]]) -> T:
        """Sends a call, built again each time, until the gateway answers it. Raises other errors than lost answers."""
        pause = FIRST_PAUSE
        while True:
            registrations = self._registrations
            try:
                return await self.once(build())
            except NotFound as error:
                if error.problem is None or error.problem.word != "remote-worker-unknown":
                    raise
                await self._register_again(registrations)
            except (Unavailable, OutcomeUnknown) as error:
                if is_end(error):
                    raise
                log.warning("the call %s failed: the worker repeats it: %s", name, error)
                await asyncio.sleep(max(pause * random.uniform(0.5, 1.0), error.retry_after or 0.0))  # noqa: S311
                pause = min(pause * 2, LONGEST_PAUSE)

    async def register(self) -> Registered:
        """Registers the worker with everything that it runs."""
        async with self._registering:
            return await self._register()

    async def _register(self) -> Registered:
        def build() -> Call[Registered]:
            return protocol.register(self.key, self._settings, self.worker, self._table.listed())

        found = await self.until_answered("register", build)
        self._registrations += 1
        self._table.taken_over(found.taken_over)
        if self.draining:
            await self.until_answered("drain", lambda: protocol.drain(self.key))
        self.worker, self.session_timeout = found.worker, found.session_timeout
        log.info("the worker registered as %s at %s", found.worker, self._addresses.current)
        return found

    async def _register_again(self, registrations: int) -> None:
        async with self._registering:
            if self._registrations != registrations:
                return  # another call has registered the worker
            log.warning("the gateway does not know this worker: the worker registers again")
            await self._register()

    async def leave(self, within: float) -> None:
        """Hands back what still runs and deregisters the worker, or gives up after this many seconds."""
        try:
            await asyncio.wait_for(self.until_answered("leave", lambda: protocol.leave(self.key)), within)
        except (ApiError, asyncio.TimeoutError) as error:
            log.warning("the worker could not deregister; its jobs move when its session timeout is over: %s", error)


def is_end(error: ApiError) -> bool:
    """Whether the answer to a finish says that the attempt is over although its end was not confirmed."""
    return isinstance(error, OutcomeUnknown) and error.problem is not None and error.problem.word == "unknown"


def is_fenced(error: ApiError) -> bool:
    """Whether the answer to a finish says that the attempt was closed by another process."""
    return isinstance(error, Conflict) and error.problem is not None and error.problem.word == "attempt-fenced"


def is_refused(error: ApiError) -> bool:
    """Whether the gateway refuses the content of a request."""
    return isinstance(error, InvalidInput)
