"""Jobs to submit, and their options."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import datetime
from typing import Any, Literal, TypeAlias

from .errors import InvalidInput
from .values import Duration, duration_text, instant_text, new_id

IfExists: TypeAlias = Literal["same", "ignore", "again"]


@dataclass(frozen=True, kw_only=True)
class Backoff:
    """How long a job waits after a failure: the wait is doubled after each further failure, with jitter."""

    initial: Duration
    """The wait after the first failure."""
    max: Duration
    """The longest wait."""

    def document(self) -> dict[str, str]:
        """Returns the API's form."""
        return {"initial": duration_text(self.initial), "max": duration_text(self.max)}


@dataclass(frozen=True, kw_only=True)
class Options:
    """Options of a job, with the names of the HTTP API. An option that is None has the default of its kind, or else that of
    the gateway."""

    max_attempts: int | None = None
    """Number of failed attempts after which the job is dead: with 1 it is not retried."""
    max_losses: int | None = None
    """Number of lost attempts (worker lost or lease expired) after which the job is dead."""
    dead_letter: bool | None = None
    """Whether the death of the job creates a job of kind `KIND.dead`."""
    backoff: Backoff | None = None
    timeout: Duration | None = None
    """Time limit of an attempt."""
    lease: Duration | None = None
    """Time without a renewal after which another worker gets the job."""
    auto_renew: bool | None = None
    """Whether the worker renews the lease while the handler runs."""
    priority: int | None = None
    """0 to 9; 9 runs first."""
    tags: Sequence[str] | None = None
    """Tags that the worker must have."""
    affinity: str | None = None
    """Key of jobs that prefer the same worker."""
    lane: str | None = None
    """Jobs of one lane run one at a time, in the order of their submission."""

    def over(self, defaults: Options | None) -> Options:
        """Returns these options, completed by defaults."""
        if defaults is None:
            return self
        mine = {item.name: getattr(self, item.name) for item in fields(self)}
        return Options(**{name: getattr(defaults, name) if it is None else it for name, it in mine.items()})

    def document(self) -> dict[str, Any]:
        """Returns the API's form of the options that are set."""
        found = {
            "max_attempts": self.max_attempts,
            "max_losses": self.max_losses,
            "dead_letter": self.dead_letter,
            "backoff": None if self.backoff is None else self.backoff.document(),
            "timeout": None if self.timeout is None else duration_text(self.timeout),
            "lease": None if self.lease is None else duration_text(self.lease),
            "auto_renew": self.auto_renew,
            "priority": self.priority,
            "tags": None if self.tags is None else list(self.tags),
            "affinity": self.affinity,
            "lane": self.lane,
        }
        return {name: value for name, value in found.items() if value is not None}


@dataclass(frozen=True, kw_only=True)
class NewJob:
    """A job to submit, with the names of the HTTP API.

    Its id is drawn here unless `id` or `named` is given, so submitting this object again is the same job.
    """

    kind: str
    payload: Any = None
    """A JSON value, or a text if `content_type` is not JSON."""
    id: str | None = None
    """None only with `named`. Members of a group and the jobs of a schedule are sent without it."""
    named: str | None = None
    """Name of the job within its kind, instead of an id: the id is KIND:NAME."""
    content_type: str | None = None
    """Content type of the payload. Default: application/json."""
    options: Options = field(default_factory=Options)
    run_at: datetime | str | None = None
    delay: Duration | None = None
    expires_at: datetime | str | None = None
    expires_in: Duration | None = None
    if_exists: IfExists = "same"

    def __post_init__(self) -> None:
        if self.id is None and self.named is None:
            object.__setattr__(self, "id", new_id())

    def document(self) -> dict[str, Any]:
        """Returns the API's form of the job."""
        found: dict[str, Any] = {
            "id": self.id,
            "named": self.named,
            "content_type": self.content_type,
            "options": self.options.document() or None,
            "run_at": None if self.run_at is None else instant_text(self.run_at),
            "delay": None if self.delay is None else duration_text(self.delay),
            "expires_at": None if self.expires_at is None else instant_text(self.expires_at),
            "expires_in": None if self.expires_in is None else duration_text(self.expires_in),
            "if_exists": None if self.if_exists == "same" else self.if_exists,
        }
        chosen = {name: value for name, value in found.items() if value is not None}
        return {"kind": self.kind, "payload": self.payload, **chosen}


def encode(document: object) -> bytes:
    """Returns a document as JSON."""
    try:
        return json.dumps(document, separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidInput(f"the payload is not a JSON value: {error}") from error


def payload_of(payload: Any, fields: Mapping[str, Any]) -> Any:
    """Returns the payload of a submission: either `payload`, or the other keyword arguments as an object."""
    if payload is None:
        return dict(fields) if fields else None
    if fields:
        raise InvalidInput(f"give `payload` or its fields, not both: {', '.join(fields)}")
    return payload
