"""Values of the API as text: durations, instants and job ids."""

from __future__ import annotations

import re
import secrets
import time
import uuid
from datetime import datetime, timedelta, timezone
from typing import TypeAlias

from .errors import InvalidInput

Duration: TypeAlias = float | timedelta | str
"""Seconds as a number, a `timedelta`, or the API's text such as `500ms`, `30s`, `5m`, `1h`, `1d`."""

_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_TEXT = re.compile(r"([0-9]{1,18})(ms|s|m|h|d)")
_FRACTION = re.compile(r"\.([0-9]+)")


def duration_text(value: Duration) -> str:
    """Returns the API's text of a duration, with a resolution of one millisecond, rounded up."""
    if isinstance(value, str):
        if not _TEXT.fullmatch(value):
            raise InvalidInput(f"{value!r} is not a duration: give seconds, a timedelta, or a text such as '30s'")
        return value
    seconds = value.total_seconds() if isinstance(value, timedelta) else float(value)
    if not 0 <= seconds < 1e12:  # also refuses NaN
        raise InvalidInput(f"a duration must be zero or more seconds, not {seconds}")
    millis = int(-(-round(seconds * 1_000_000) // 1000))
    return f"{millis // 1000}s" if millis % 1000 == 0 else f"{millis}ms"


def seconds_of(value: Duration) -> float:
    """Returns a duration in seconds."""
    match = _TEXT.fullmatch(duration_text(value))
    assert match is not None, "duration_text returns a duration"  # noqa: S101
    return int(match[1]) * _UNITS[match[2]]


def instant_text(value: datetime | str) -> str:
    """Returns an instant in RFC 3339. A `datetime` must have a time zone."""
    if isinstance(value, str):
        return value
    if value.tzinfo is None:
        raise InvalidInput(f"{value!r} has no time zone: use for example datetime.now(timezone.utc)")
    return value.astimezone(timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def instant_of(text: str) -> datetime:
    """Parses RFC 3339 with any number of fractional digits; Python 3.10 accepts only three or six."""
    text = _FRACTION.sub(lambda digits: "." + digits[1][:6].ljust(6, "0"), text)
    return datetime.fromisoformat(text.replace("Z", "+00:00"))


def new_id() -> str:
    """Draws a UUID of version 7: unique, and ordered by time."""
    bits = time.time_ns() // 1_000_000 << 80 | secrets.randbits(80)
    bits = bits & ~(0xF << 76) | 7 << 76
    bits = bits & ~(0x3 << 62) | 2 << 62
    return str(uuid.UUID(int=bits))
