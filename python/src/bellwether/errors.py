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
`OutcomeUnknown`. `ApiError.remedy` is what the caller can do, as a word of the HTTP API.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Literal, get_args

if TYPE_CHECKING:
    from .model import JobView

PROBLEM = "urn:bellwether:problem:"

Remedy = Literal["retry", "read_back", "fix_input", "give_up"]
"""What the caller of a failed request can do.

* `retry`: make the same call again later; repeating it is safe.
* `read_back`: read the state and decide, because it is unknown whether the change was applied.
* `fix_input`: correct the call, or the state that it conflicts with.
* `give_up`: the caller can do nothing that makes the call succeed; an operator has to look.
"""

_REMEDIES: Mapping[str, Remedy] = {word: word for word in get_args(Remedy)}


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
    remedy: Remedy | None = None
    """What the caller can do; None if the answer is not one of a gateway of this version."""
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
            remedy=_REMEDIES.get(text("remedy") or ""),
            document=fields,
        )


class BellwetherError(Exception):
    """The base of all exceptions of this package."""


class ApiError(BellwetherError):
    """A request failed. `problem` is the gateway's problem document, or None if there was no answer."""

    _remedy: ClassVar[Remedy] = "give_up"
    """The remedy if the problem document has none."""

    def __init__(self, message: str, problem: Problem | None = None, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.problem = problem
        self.retry_after = retry_after

    @property
    def remedy(self) -> Remedy:
        """What the caller can do: `retry`, `read_back`, `fix_input` or `give_up`."""
        return (self.problem and self.problem.remedy) or self._remedy

    @property
    def is_retryable(self) -> bool:
        """Whether the same call may succeed later, and repeating it is safe. Nothing has to be changed."""
        return self.remedy == "retry"


class InvalidInput(ApiError, ValueError):
    """The request is invalid; repeating it cannot help."""

    _remedy = "fix_input"


class AccessDenied(ApiError):
    """The token is missing or invalid, or its role is too low."""

    _remedy = "fix_input"


class NotFound(ApiError, LookupError):
    """There is no such job, group, schedule or worker."""

    _remedy = "fix_input"


class Conflict(ApiError):
    """The stored state does not allow the request."""

    _remedy = "fix_input"


class Unavailable(ApiError):
    """Nothing was changed. Retry later, or on another gateway."""

    _remedy = "retry"


class OutcomeUnknown(ApiError):
    """The request may or may not have been applied.

    `remedy` is always `read_back`: the client has repeated what is safe to repeat, and the same call again would submit another
    job if it has no id.
    """

    @property
    def remedy(self) -> Remedy:
        """`read_back`."""
        return "read_back"


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
