"""The messages between a worker and its gateway, as `Call` values. Every call may be repeated."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from ..errors import Problem
from ..exchange import Call
from ..job import Invalid, JobFacts, Progress, RetryLater
from ..options import encode
from ..values import duration_text, seconds_of

Outcome: TypeAlias = Mapping[str, Any]
"""One of `{"succeeded": PAYLOAD}`, `{"failed": TEXT}`, `{"invalid": TEXT}`, `{"retry_later": DURATION}`."""
Key: TypeAlias = tuple[str, int]
"""Job and fencing token: they identify an attempt for ever. A takeover by another gateway gives it a further key."""

MAX_PAYLOAD_BYTES = 64 * 1024
MAX_ERROR_BYTES = 4 * 1024
MAX_FINISH = 256
MAX_POLL = 256
MAX_BODY_BYTES = 900 * 1024
"""The gateway accepts 1 MiB; the rest is for the names of the fields."""
READ_MARGIN = 5.0
"""Seconds that an answer may take longer than the gateway waits for events."""


@dataclass(frozen=True)
class Attempt:
    """An attempt that the gateway has delivered."""

    facts: JobFacts
    payload: Any
    lease: float
    refusal: str | None = None
    """Why the payload cannot be read."""
    auto_renew: bool | None = None
    """What the job says about the renewal of its lease; None: its kind decides."""

    @property
    def key(self) -> Key:
        return self.facts.id, self.facts.fencing_token

    @classmethod
    def of(cls, document: Mapping[str, Any]) -> Attempt:
        progress = document.get("progress")
        checkpoint = document.get("checkpoint")
        facts = JobFacts(
            id=document["job"],
            kind=document["kind"],
            generation=document["generation"],
            attempt=document["attempt"],
            fencing_token=document["fencing_token"],
            priority=document.get("priority", 5),
            group=document.get("group"),
            number=document.get("number"),
            traceparent=document.get("traceparent"),
            checkpoint=None if checkpoint is None else base64.b64decode(checkpoint),
            progress=None if progress is None else Progress(progress["percent"], progress.get("message") or ""),
            submission=document.get("submission"),
        )
        lease = seconds_of(document["lease"])
        renew = document.get("auto_renew")
        try:
            return cls(facts, _payload(document["payload"]), lease, auto_renew=renew)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            return cls(facts, None, lease, f"the payload cannot be read: {error!r}", auto_renew=renew)


def _payload(document: Mapping[str, Any]) -> Any:
    if "json" in document:
        return document["json"]
    return document["text"] if "text" in document else base64.b64decode(document["base64"])


@dataclass(frozen=True)
class Stop:
    """An attempt that must stop: `cancelled`, `closed` or `handed_back`."""

    key: Key
    reason: str

    @classmethod
    def of(cls, document: Mapping[str, Any]) -> Stop:
        return cls((document["job"], document["fencing_token"]), document["reason"])


@dataclass(frozen=True)
class Polled:
    attempts: list[Attempt]
    stops: list[Stop]
    draining: bool


@dataclass(frozen=True)
class Registered:
    worker: str
    session_timeout: float
    taken_over: Mapping[Key, int]
    """The new tokens of the attempts that the gateway took over."""


@dataclass(frozen=True)
class Settings:
    """What a worker registers."""

    node_id: str
    kinds: Sequence[Mapping[str, Any]]
    slots: int
    tags: Sequence[str]
    session_timeout: float


def _path(key: str, action: str = "") -> str:
    return f"/v1/remote-workers/{key}{action}"


def _names(facts: JobFacts) -> dict[str, Any]:
    return {"job": facts.id, "attempt": facts.attempt, "fencing_token": facts.fencing_token}


def register(key: str, settings: Settings, former: str | None, running: Sequence[JobFacts]) -> Call[Registered]:
    document = {
        "node_id": settings.node_id,
        "kinds": list(settings.kinds),
        "slots": settings.slots,
        "tags": list(settings.tags),
        "session_timeout": duration_text(settings.session_timeout),
        "former_worker": former,
        "running": [
            {**_names(facts), "generation": facts.generation, "submission": facts.submission} for facts in running
        ],
    }

    def read(_status: int, found: Any) -> Registered:
        taken = {(one["job"], one["fencing_token"]): one["new_fencing_token"] for one in found.get("taken_over", ())}
        return Registered(found["worker"], seconds_of(found["session_timeout"]), taken)

    return Call("PUT", _path(key), read, body=encode(document))


def poll(key: str, running: Sequence[JobFacts], most: int, wait: int) -> Call[Polled]:
    document = {
        "running": [_names(facts) for facts in running],
        "limit": max(1, min(most, MAX_POLL)),
        "timeout": duration_text(wait),
    }

    def read(_status: int, found: Any) -> Polled:
        attempts = [Attempt.of(attempt) for attempt in found["attempts"]]
        return Polled(attempts, [Stop.of(stop) for stop in found["stop"]], bool(found.get("draining")))

    return Call("POST", _path(key, "/poll"), read, body=encode(document), read_timeout=wait + READ_MARGIN)


@dataclass(frozen=True)
class Beat:
    """The heartbeat of one attempt."""

    facts: JobFacts
    progress: Progress | None = None
    checkpoint: bytes | None = None

    def document(self) -> dict[str, Any]:
        found = _names(self.facts)
        if self.progress is not None:
            found |= {"percent": self.progress.percent, "message": self.progress.message}
        if self.checkpoint is not None:
            found["checkpoint"] = base64.b64encode(self.checkpoint).decode()
        return found


def heartbeat(key: str, beats: Sequence[Beat], read_timeout: float) -> Call[Polled]:
    document = {"running": [beat.document() for beat in beats]}

    def read(_status: int, found: Any) -> Polled:
        return Polled([], [Stop.of(stop) for stop in found["stop"]], bool(found.get("draining")))

    body = encode(document)
    return Call("POST", _path(key, "/heartbeat"), read, body=body, read_timeout=read_timeout)


@dataclass(frozen=True)
class Finished:
    """An attempt that has ended here, and is not yet known to have ended at the gateway."""

    facts: JobFacts
    outcome: Outcome

    def document(self) -> dict[str, Any]:
        return {**_names(self.facts), "outcome": self.outcome}


@dataclass(frozen=True)
class Ended:
    """What became of an outcome: `closed`, `fenced` or `unknown`."""

    status: str
    problem: Problem | None


def finish(key: str, finished: Sequence[Finished]) -> Call[list[Ended]]:
    document = {"attempts": [one.document() for one in finished]}

    def read(_status: int, found: Any) -> list[Ended]:
        results = [Ended(one["status"], _problem(one.get("problem"))) for one in found["results"]]
        if len(results) != len(finished):
            raise ValueError("one result per attempt expected")
        return results

    return Call("POST", _path(key, "/finish"), read, body=encode(document))


def _problem(document: object) -> Problem | None:
    return None if document is None else Problem.of(document, 409)


def drain(key: str) -> Call[None]:
    return Call("POST", _path(key, "/drain"), lambda _status, _found: None)


def leave(key: str) -> Call[None]:
    return Call("DELETE", _path(key), lambda _status, _found: None)


def outcome_of_result(result: Any) -> Outcome:
    """Returns the outcome for what a handler returned: any JSON value, or bytes."""
    payload: dict[str, Any]
    if isinstance(result, bytes):
        size, payload = len(result), {"base64": base64.b64encode(result).decode()}
    else:
        try:
            text = json.dumps(result, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
            size, payload = len(text.encode()), {"json": result}
        except (TypeError, ValueError, RecursionError) as error:
            return failed(f"the result is not a JSON value: {error}")
    if size > MAX_PAYLOAD_BYTES:
        return failed(f"the result has {size} bytes; at most {MAX_PAYLOAD_BYTES} are allowed: store it elsewhere")
    return {"succeeded": payload}


def outcome_of_error(error: BaseException) -> Outcome:
    """Returns the outcome for what a handler raised."""
    if isinstance(error, RetryLater):
        return {"retry_later": error.after}
    if isinstance(error, Invalid):
        return {"invalid": bounded(str(error) or "invalid")}
    text = str(error)
    return failed(f"{type(error).__name__}: {text}" if text else type(error).__name__)


def failed(message: str) -> Outcome:
    return {"failed": bounded(message)}


def bounded(text: str) -> str:
    """Returns the start of a text that the gateway stores completely."""
    return text.encode(errors="replace")[:MAX_ERROR_BYTES].decode(errors="ignore")
