"""The stream of events of the sync client."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack
from types import TracebackType
from typing import TYPE_CHECKING

import httpx

from .calls import EVENTS
from .exchange import Call, Done, Exchange
from .model import Event, EventsMissed
from .sse import READ_TIMEOUT, EventDecoder

if TYPE_CHECKING:
    from .client import Bellwether


class EventStream:
    """Events of jobs. Connects in `__enter__`, so every change after that is seen, or reported as missed."""

    def __init__(self, client: Bellwether, query: dict[str, str], retry_for: float) -> None:
        self._client = client
        self._call = Call("GET", EVENTS, lambda _status, _document: None, query=query, read_timeout=READ_TIMEOUT)
        self._retry_for = retry_for
        self._http = httpx.Client(verify=client.verify)
        self._open = ExitStack()
        self._response: httpx.Response | None = None

    def __enter__(self) -> EventStream:
        self._connect()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self._open.close()
        self._http.close()

    def _connect(self) -> httpx.Response:
        exchange = Exchange(self._call, time.monotonic(), self._retry_for)
        while True:
            self._open.close()
            base = self._client.addresses.current
            try:
                response = self._http.send(exchange.request(self._http, base, self._client.headers()), stream=True)
                self._open.callback(response.close)
                if response.is_success:
                    self._response = response
                    return response
                response.read()
            except httpx.TransportError as error:
                pause = exchange.failed(error, time.monotonic())
            else:
                step = exchange.received(response, time.monotonic())
                assert not isinstance(step, Done), "a success was returned above"  # noqa: S101
                pause = step
            self._client.addresses.move(base)
            time.sleep(pause.seconds)

    def __iter__(self) -> Iterator[Event]:
        while True:
            response = self._response or self._connect()
            decoder = EventDecoder()
            try:
                for chunk in response.iter_raw():
                    yield from decoder.feed(chunk)
            except httpx.TransportError:
                pass  # reported as missed events below
            self._response = None
            self._connect()
            yield EventsMissed("reconnected")
