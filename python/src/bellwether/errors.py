"""Exceptions, grouped by what the caller can do.

==================== =====================================================================
exception            what to do
==================== =====================================================================
`InvalidInput`       correct the request; the message names the field and the bound
`AccessDenied`       use a valid token, or a token of a higher role
`NotFound`           the job, group or schedule does not exist, or its record was removed
`Conflict`           the stored state does not allow it: read it and decide
`Unavailable`        nothing was changed; retry later (`retry_after`), or on another gateway
`OutcomeUnknown`     the change may or may not have been applied: read the state and decide
`ServerError`        the gateway or ZooKeeper refused or failed: an operator has to look
`UnexpectedAnswer`   the address is not a Bellwether gateway, or it has another version
`JobDead`            the job failed for good; `job` is its last state
`JobCancelled`       the job was cancelled; `job` is its last state
`WaitTimeout`        the job or group has not ended yet: wait again
==================== =====================================================================

The client has already repeated requests that are safe to repeat, for `retry_for` seconds, when it raises `Unavailable` or
`OutcomeUnknown`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .model import JobView

PROBLEM = "urn:bellwether:problem:"


@dataclass(frozen=True)
class Problem:
    """A problem document (RFC 9457) of the gateway."""

    word: str
    """The type without its prefix `urn:bellwether:problem:`; it does not change between versions."""
    status: int
    title: str
    detail: str
    request_id: str | None = None
    job: str | None = None
    document: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)

    @classmethod
    def of(cls, document: object, status: int) -> Problem:
        """Reads a problem document; what is missing or has another type is derived from the status."""
        fields: Mapping[str, Any] = document if isinstance(document, dict) else {}

        def text(name: str) -> str | None:
            value = fields.get(name)
            return value if isinstance(value, str) else None

        given = fields.get("status")
        return cls(
            word=(text("type") or "about:blank").removeprefix(PROBLEM),
            status=given if isinstance(given, int) else status,
            title=text("title") or f"HTTP {status}",
            detail=text("detail") or "",
            request_id=text("request_id"),
            job=text("job"),
            document=fields,
        )


class BellwetherError(Exception):
    """The base of all exceptions of this package."""


class ApiError(BellwetherError):
    """A request failed. `problem` is the gateway's problem document, or None if there was no answer."""

    def __init__(self, message: str, problem: Problem | None = None, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.problem = problem
        self.retry_after = retry_after


class InvalidInput(ApiError, ValueError):
    """The request is invalid; repeating it cannot help."""


class AccessDenied(ApiError):
    """The token is missing or invalid, or its role is too low."""


class NotFound(ApiError, LookupError):
    """There is no such job, group, schedule or worker."""


class Conflict(ApiError):
    """The stored state does not allow the request."""


class Unavailable(ApiError):
    """Nothing was changed. Retry later, or on another gateway."""


class OutcomeUnknown(ApiError):
    """The request may or may not have been applied."""


class ServerError(ApiError):
    """The gateway failed, or ZooKeeper refused the operation."""


class UnexpectedAnswer(ApiError):
    """The answer is not one of the gateway's API."""


class JobFailed(BellwetherError):
    """The job ended without a result. `job` is its final state."""

    def __init__(self, job: JobView) -> None:
        super().__init__(f"job {job.id} is {job.state}" + (f": {job.error}" if job.error else ""))
        self.job = job

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.job,)


class JobDead(JobFailed):
    """The job is dead: it failed, was invalid, expired, or lost its workers too often."""


class JobCancelled(JobFailed):
    """The job was cancelled."""


class WaitTimeout(BellwetherError, TimeoutError):
    """The job or group has not ended within the timeout. It runs on."""


_CLASSES: dict[int, type[ApiError]] = {
    401: AccessDenied,
    403: AccessDenied,
    404: NotFound,
    409: Conflict,
    429: Unavailable,
    503: Unavailable,
    504: OutcomeUnknown,
}


def error_of(problem: Problem, retry_after: float | None = None) -> ApiError:
    """Returns the exception for a problem document."""
    kind = _CLASSES.get(problem.status)
    if problem.status == 504 and problem.word == "late":
        kind = Unavailable
    elif problem.status == 409 and retry_after is not None:
        kind = Unavailable  # the state changed during the request; nothing was changed
    elif kind is None:
        kind = InvalidInput if 400 <= problem.status < 500 else ServerError
    message = f"{problem.title}: {problem.detail}" if problem.detail else problem.title
    return kind(message, problem, retry_after)
