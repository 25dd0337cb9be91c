"""Schedules to add, and changes of schedules."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from .errors import InvalidInput
from .options import NewJob
from .values import Duration, duration_text, instant_text


@dataclass(frozen=True, kw_only=True)
class Ticks:
    """When a schedule ticks, and what happens to ticks that are late or overlap: at most one of `cron`, `every`, `at`."""

    cron: str | None = None
    """Five fields (minute, hour, day of month, month, day of week), or six of which the first is the second."""
    zone: str | None = None
    """IANA zone of `cron`; default UTC."""
    every: Duration | None = None
    anchor: datetime | str | None = None
    at: datetime | str | None = None
    misfire: Literal["skip", "once", "catch_up"] | None = None
    """What happens to ticks that were missed because there was no leader."""
    catch_up_limit: int | None = None
    """With `misfire="catch_up"`: how many missed ticks get a job, 1 to 100. Default if `misfire` is given: 10."""
    catch_up_within: Duration | None = None
    """With `misfire="catch_up"`: maximum age of missed ticks that get a job. Default if `misfire` is given: a day."""
    overlap: Literal["allow", "forbid", "queue"] | None = None
    grace: Duration | None = None
    """How late a tick may be before it counts as missed."""

    def document(self) -> dict[str, Any]:
        """Returns the API's form of what is set."""
        found = {
            "cron": self.cron,
            "zone": self.zone,
            "every": None if self.every is None else duration_text(self.every),
            "anchor": None if self.anchor is None else instant_text(self.anchor),
            "at": None if self.at is None else instant_text(self.at),
            "misfire": self.misfire,
            "catch_up_limit": self.catch_up_limit,
            "catch_up_within": None if self.catch_up_within is None else duration_text(self.catch_up_within),
            "overlap": self.overlap,
            "grace": None if self.grace is None else duration_text(self.grace),
        }
        return {name: value for name, value in found.items() if value is not None}


@dataclass(frozen=True, kw_only=True)
class ScheduleChange(Ticks):
    """A change of a schedule; a field that is None keeps its value. The job does not change: to change it, add the
    schedule again with `replace`."""


@dataclass(frozen=True, kw_only=True)
class NewSchedule(Ticks):
    """A schedule to add, with one of `cron`, `every` and `at`."""

    id: str
    job: NewJob
    """The job that each tick submits, without start, expiry and `if_exists`. Its id is not used."""
    expires_after: Duration | None = None
    job_id: str | None = None
    """Id of the job of every tick. Default: each tick has its own job."""
    replace: bool = False
    """Whether to replace a schedule that has this id and another spec."""

    def document(self) -> dict[str, Any]:
        """Returns the API's form of the schedule."""
        found = {
            "expires_after": None if self.expires_after is None else duration_text(self.expires_after),
            "job_id": self.job_id,
            "replace": self.replace or None,
        }
        chosen = {name: value for name, value in found.items() if value is not None}
        job = self.job.document()
        job.pop("id", None)
        if wrong := sorted(job.keys() - {"kind", "payload", "content_type", "options"}):
            raise InvalidInput(f"the job of a schedule has no {', '.join(wrong)}: leave that out")
        return {"id": self.id, "job": job, **super().document(), **chosen}
