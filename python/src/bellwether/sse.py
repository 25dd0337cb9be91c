"""Server-sent events, decoded from chunks of bytes."""

from __future__ import annotations

import json

from .errors import UnexpectedAnswer
from .model import Event, EventsMissed, JobChanged

LONGEST_LINE = 1024 * 1024
READ_TIMEOUT = 45.0
"""The gateway sends a comment every 15 s; a longer silence is a broken connection."""


class EventDecoder:
    """Decodes the stream of `/v1/events`."""

    def __init__(self) -> None:
        self._rest = b""
        self._name = ""
        self._data: list[str] = []

    def feed(self, chunk: bytes) -> list[Event]:
        """Returns the events that this chunk completes."""
        lines = (self._rest + chunk).split(b"\n")
        self._rest = lines.pop()
        if len(self._rest) > LONGEST_LINE:
            raise UnexpectedAnswer("the event stream has a line that is too long")
        found = (self._line(line.removesuffix(b"\r").decode(errors="replace")) for line in lines)
        return [event for event in found if event is not None]

    def _line(self, line: str) -> Event | None:
        if not line:
            name, data = self._name, "\n".join(self._data)
            self._name, self._data = "", []
            return _event(name, data)
        field, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if field == "event":
            self._name = value
        elif field == "data":
            self._data.append(value)
        return None


def _event(name: str, data: str) -> Event | None:
    if name == "missed":
        return EventsMissed("slow")
    if name == "gap":
        return EventsMissed("gap")
    if name != "job":
        return None  # a comment, or an event of a later version
    try:
        return JobChanged.of(json.loads(data))
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise UnexpectedAnswer(f"not an event of a job: {data[:200]!r}") from error
