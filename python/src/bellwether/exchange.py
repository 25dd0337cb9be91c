"""One request and its repetitions, without I/O: what to send, and what each answer or failure means.

The shells in `client` and `aio` send what `Exchange.request` returns and pass back what happened. A request that may have been
applied although its answer was lost is repeated only if repeating it is harmless (`Repeat.SAFE`). Otherwise the caller gets
`OutcomeUnknown`.
"""

from __future__ import annotations

import enum
import json
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

import httpx

from .errors import (
    ApiError,
    InvalidInput,
    OutcomeUnknown,
    Problem,
    ServerError,
    Unavailable,
    UnexpectedAnswer,
    error_of,
)

T = TypeVar("T")

FIRST_PAUSE = 0.1
LONGEST_PAUSE = 2.0
CONNECT_TIMEOUT = 5.0
READ_TIMEOUT = 30.0
"""The gateway ends a request after 20 s; a longer silence is a broken connection."""
ERROR_TEXT = 200
"""Characters of a foreign answer that an error quotes."""

ABOUT_BLANK = "about:blank"
"""The type of a problem that the gateway did not write."""

UNSENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout)


class Repeat(enum.Enum):
    """Whether a request may be sent again when it may have been applied."""

    SAFE = "safe"
    UNSENT = "only if it was not applied"


@dataclass(frozen=True)
class Call(Generic[T]):
    """A request to the gateway, and how its answer is read."""

    method: str
    path: str
    decode: Callable[[int, Any], T]
    query: Mapping[str, str] = field(default_factory=dict)
    body: bytes | None = None
    repeat: Repeat = Repeat.SAFE
    read_timeout: float = READ_TIMEOUT
    headers: Mapping[str, str] = field(default_factory=dict)
    gone: Callable[[], T] | None = None
    """The value if a repetition finds that the resource does not exist: an earlier one has removed it."""

    @property
    def changes(self) -> bool:
        return self.method != "GET"


@dataclass(frozen=True)
class Done(Generic[T]):
    """The request was answered."""

    value: T


@dataclass(frozen=True)
class Pause:
    """Send the request again after this time; `move` to another gateway first, if there is one."""

    seconds: float
    move: bool


class Addresses:
    """The gateways of a client. All serve the same namespace; one is used until it fails."""

    def __init__(self, urls: str | Sequence[str]) -> None:
        given = [urls] if isinstance(urls, str) else list(urls)
        if not given:
            raise InvalidInput("give the address of at least one gateway")
        for url in given:
            if not url.startswith(("http://", "https://")):
                raise InvalidInput(f"{url!r} is not the address of a gateway: it starts with http:// or https://")
        self.urls = [url.rstrip("/") for url in given]
        self._at = 0

    @property
    def current(self) -> str:
        return self.urls[self._at]

    def move(self, from_url: str) -> None:
        """Uses the next gateway, unless another thread has already left this one."""
        if self.current == from_url:
            self._at = (self._at + 1) % len(self.urls)


class Exchange(Generic[T]):
    """The state of one call: how often it was sent, and whether it may have been applied."""

    def __init__(self, call: Call[T], now: float, retry_for: float) -> None:
        self.call = call
        self._deadline = now + retry_for
        self._tries = 0
        self._maybe_applied = False

    def request(self, client: httpx.Client | httpx.AsyncClient, base: str, headers: Mapping[str, str]) -> httpx.Request:
        """Returns the request to send now."""
        call = self.call
        headers = {**headers, **call.headers}
        if call.body is not None:
            headers["content-type"] = "application/json"
        timeout = httpx.Timeout(call.read_timeout, connect=CONNECT_TIMEOUT)
        return client.build_request(
            call.method,
            base + call.path,
            params=call.query,
            content=call.body,
            headers=headers,
            timeout=timeout,
        )

    def failed(self, error: httpx.TransportError, now: float) -> Pause:
        """The request got no answer. Raises if it must not be repeated, or not any more."""
        if not isinstance(error, UNSENT):
            self._maybe_applied = True
        reason = str(error) or type(error).__name__
        if self._maybe_applied and self.call.changes:
            lost: ApiError = OutcomeUnknown(f"{self._name()}: the answer was lost: {reason}")
        else:
            lost = Unavailable(f"{self._name()}: the gateway does not answer: {reason}")
        return self._again(lost, error, now, move=True)

    def received(self, response: httpx.Response, now: float) -> Done[T] | Pause:
        """Reads the answer. Raises if it is an error that a repetition cannot repair, or not in time."""
        if 200 <= response.status_code < 300:
            return Done(self._value(response))
        if response.status_code == 404 and self._maybe_applied and self.call.gone is not None:
            return Done(self.call.gone())
        error = self._error(response)
        if isinstance(error, OutcomeUnknown):
            self._maybe_applied = True
        elif not isinstance(error, Unavailable):
            raise error
        elif self._maybe_applied and self.call.changes:
            # This repetition changed nothing, but an earlier one may have.
            error = OutcomeUnknown(str(error), error.problem, error.retry_after)
        return self._again(error, None, now, move=True)

    def _value(self, response: httpx.Response) -> T:
        try:
            document = response.json() if response.content else None
            return self.call.decode(response.status_code, document)
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            quoted = response.text[:ERROR_TEXT]
            raise UnexpectedAnswer(f"{self._name()}: not an answer of the API: {quoted!r}") from error

    def _error(self, response: httpx.Response) -> ApiError:
        try:
            document = json.loads(response.content)
        except (ValueError, RecursionError):
            document = None
        error = error_of(Problem.of(document, response.status_code), _retry_after(response))
        if isinstance(error, ServerError) and (error.problem is None or error.problem.word == ABOUT_BLANK):
            # A proxy between this client and the gateway.
            return OutcomeUnknown(f"{self._name()}: HTTP {response.status_code}", error.problem, error.retry_after)
        return error

    def _again(self, error: ApiError, cause: Exception | None, now: float, *, move: bool) -> Pause:
        if self._maybe_applied and self.call.repeat is Repeat.UNSENT:
            raise error from cause
        longest = min(LONGEST_PAUSE, FIRST_PAUSE * 2 ** min(self._tries, 16))
        self._tries += 1
        pause = max(longest * random.uniform(0.5, 1.0), error.retry_after or 0.0)  # noqa: S311
        if now + pause > self._deadline:
            raise error from cause
        return Pause(pause, move)

    def _name(self) -> str:
        return f"{self.call.method} {self.call.path}"


def _retry_after(response: httpx.Response) -> float | None:
    text = response.headers.get("retry-after", "")
    return float(text) if text.isascii() and text.isdigit() and len(text) < 10 else None
