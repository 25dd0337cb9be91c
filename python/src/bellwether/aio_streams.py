"""The stream of events of the async client."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from types import TracebackType
from typing import TYPE_CHECKING

import httpx

from .calls import EVENTS
from .exchange import Call, Done, Exchange
from .model import Event, EventsMissed
from .sse import READ_TIMEOUT, EventDecoder

if TYPE_CHECKING:
    from .aio import AsyncBellwether


class AsyncEventStream:
    """Events of jobs. Connects in `__aenter__`, so every change after that is seen, or reported as missed."""

    def __init__(self, client: AsyncBellwether, query: dict[str, str], retry_for: float) -> None:
        self._client = client
        self._call = Call("GET", EVENTS, lambda _status, _document: None, query=query, read_timeout=READ_TIMEOUT)
        self._retry_for = retry_for
        self._http = httpx.AsyncClient(verify=client.verify)
        self._open = AsyncExitStack()
        self._response: httpx.Response | None = None

    async def __aenter__(self) -> AsyncEventStream:
        await self._connect()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        await self._open.aclose()
        await self._http.aclose()

    async def _connect(self) -> httpx.Response:
        exchange = Exchange(self._call, time.monotonic(), self._retry_for)
        while True:
            await self._open.aclose()
            base = self._client.addresses.current
            try:
                response = await self._http.send(
                    exchange.request(self._http, base, self._client.headers()), stream=True
                )
                self._open.push_async_callback(response.aclose)
                if response.is_success:
                    self._response = response
                    return response
                await response.aread()
            except httpx.TransportError as error:
                pause = exchange.failed(error, time.monotonic())
            else:
                step = exchange.received(response, time.monotonic())
                assert not isinstance(step, Done), "a success was returned above"  # noqa: S101
                pause = step
            self._client.addresses.move(base)
            await asyncio.sleep(pause.seconds)

    async def __aiter__(self) -> AsyncIterator[Event]:
        while True:
            response = self._response or await self._connect()
            decoder = EventDecoder()
            try:
                async for chunk in response.aiter_raw():
                    for event in decoder.feed(chunk):
                        yield event
            except httpx.TransportError:
                pass  # reported as missed events below
            self._response = None
            await self._connect()
            yield EventsMissed("reconnected")
