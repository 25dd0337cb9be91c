"""What the gateway answers. Each class keeps the complete document, with fields that later versions add."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Generic, Literal, TypeAlias, TypeVar

from .values import instant_of

Document: TypeAlias = Mapping[str, Any]
State: TypeAlias = Literal["queued", "delayed", "running", "succeeded", "cancelled", "dead", "quarantined"]
T = TypeVar("T")


def _instant(document: Document, name: str) -> datetime | None:
    text = document.get(name)
    return None if text is None else instant_of(text)


@dataclass(frozen=True)
class JobView:
    """A job as it was when it was read."""

    id: str
    kind: str | None
    state: State
    attempt: int
    generation: int
    failures: int
    losses: int
    payload: Any
    result: Any
    error: str | None
    worker: str | None
    group: str | None
    percent: int | None
    message: str | None
    cancel_requested: bool
    waiting_for: str | None
    trace_id: str | None
    submitted_at: datetime | None
    not_before: datetime | None
    finished_at: datetime | None
    document: Document = field(repr=False, compare=False)

    @property
    def ended(self) -> bool:
        """Whether the job has ended: succeeded, cancelled or dead."""
        return self.state in ("succeeded", "cancelled", "dead")

    @classmethod
    def of(cls, document: Document) -> JobView:
        names = ("kind", "payload", "result", "error", "worker", "group", "percent", "message")
        return cls(
            id=document["id"],
            state=document["state"],
            attempt=document["attempt"],
            generation=document["generation"],
            failures=document["failures"],
            losses=document["losses"],
            cancel_requested=bool(document.get("cancel_requested")),
            waiting_for=document.get("waiting_for"),
            trace_id=document.get("trace_id"),
            submitted_at=_instant(document, "submitted_at"),
            not_before=_instant(document, "not_before"),
            finished_at=_instant(document, "finished_at"),
            document=document,
            **{name: document.get(name) for name in names},
        )


@dataclass(frozen=True)
class Submitted:
    """An accepted submission."""

    id: str
    accepted: str
    """`new`, `same` (the job already existed), `other` (another job has the id) or `again` (it was opened again)."""
    duplicate: bool
    generation: int = 1
    """The generation that was accepted, which the handle waits for; 1 if the job already existed."""

    @classmethod
    def of(cls, document: Document) -> Submitted:
        return cls(document["id"], document["accepted"], document["duplicate"], document["generation"])


@dataclass(frozen=True)
class Changed:
    """The outcome of a cancel or a retry, as a word: `cancelled`, `requested`, `reopened`, `still_open` and others."""

    id: str
    outcome: str
    generation: int | None
    worker: str | None

    @classmethod
    def of(cls, document: Document) -> Changed:
        return cls(document["id"], document["outcome"], document.get("generation"), document.get("worker"))


@dataclass(frozen=True)
class Explanation:
    """Why a job does not run."""

    id: str
    state: State
    why: str
    sentence: str
    document: Document = field(repr=False, compare=False)

    @classmethod
    def of(cls, document: Document) -> Explanation:
        return cls(document["id"], document["state"], document["why"], document["sentence"], document)


@dataclass(frozen=True)
class GroupView:
    """A group with the counts of its members."""

    id: str
    kind: str
    stage: str
    status: str
    total: int | None
    missing: int | None
    open: int
    succeeded: int
    cancelled: int
    dead: int
    join: str | None
    finished: str | None
    document: Document = field(repr=False, compare=False)

    @property
    def done(self) -> bool:
        """Whether the members, the join and the parent's finished handler have ended."""
        return self.stage == "done"

    @classmethod
    def of(cls, document: Document) -> GroupView:
        return cls(
            id=document["id"],
            kind=document["kind"],
            stage=document["stage"],
            status=document["status"],
            total=document.get("total"),
            missing=document.get("missing"),
            open=document["open"],
            succeeded=document["succeeded"],
            cancelled=document["cancelled"],
            dead=document["dead"],
            join=document.get("join"),
            finished=document.get("finished"),
            document=document,
        )


@dataclass(frozen=True)
class GroupSummary:
    """A group in a list, without counts. `stage` is None if its record cannot be read."""

    id: str
    kind: str | None
    stage: str | None
    total: int | None
    document: Document = field(repr=False, compare=False)

    @classmethod
    def of(cls, document: Document) -> GroupSummary:
        return cls(document["id"], document.get("kind"), document["stage"], document.get("total"), document)


@dataclass(frozen=True)
class ScheduleView:
    """A schedule. All fields except `id` and `error` are None if its record cannot be read."""

    id: str
    state: str | None
    kind: str | None
    paused: bool | None
    next: datetime | None
    last_tick: datetime | None
    last_job: str | None
    ticked: int | None
    skipped: int | None
    error: str | None
    document: Document = field(repr=False, compare=False)

    @classmethod
    def of(cls, document: Document) -> ScheduleView:
        names = ("state", "kind", "paused", "last_job", "ticked", "skipped", "error")
        return cls(
            id=document["id"],
            next=_instant(document, "next"),
            last_tick=_instant(document, "last_tick"),
            document=document,
            **{name: document.get(name) for name in names},
        )


@dataclass(frozen=True)
class JobChanged:
    """Event: the current state of a job. A short-lived state may be omitted, but not the last one."""

    job: str
    kind: str | None
    state: State
    attempt: int
    generation: int
    worker: str | None
    error: str | None

    @classmethod
    def of(cls, document: Document) -> JobChanged:
        return cls(
            document["job"],
            document.get("kind"),
            document["state"],
            document["attempt"],
            document["generation"],
            document.get("worker"),
            document.get("error"),
        )


@dataclass(frozen=True)
class EventsMissed:
    """Event: other events may be missing. List the jobs to know their state."""

    reason: Literal["slow", "gap", "reconnected"]
    """This reader was too slow; the gateway lost events; or the connection to the gateway was lost."""


Event: TypeAlias = JobChanged | EventsMissed


@dataclass(frozen=True)
class Page(Generic[T]):
    """A page of a list."""

    items: list[T]
    next: str | None
