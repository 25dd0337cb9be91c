"""Client and worker for Bellwether, a distributed job scheduler that loses no acknowledged job.

```python
from bellwether import Bellwether, Job

app = Bellwether("http://127.0.0.1:8080")

@app.kind("mail", max_attempts=6, timeout=30)
def mail(to: str, subject: str, job: Job) -> dict[str, str]:
    job.progress(50, "sending")
    return {"sent": to}

app.submit("mail", to="a@example.org", subject="hi", id="mail-1").result(timeout=30)
app.run(slots=16)
```

| module | content |
| --- | --- |
| `client`, `aio` | the sync and the async client: thin shells around `exchange` |
| `calls`, `exchange` | pure: each operation as a request, how its answer is read, and when it is sent again |
| `options`, `schedules`, `model`, `values` | what is sent and what is answered |
| `errors` | exceptions, grouped by what the caller can do |
| `kinds`, `job` | handlers, and what they get and raise |
| `worker` | the worker |
| `testing` | a server for tests |
"""

from .aio import AsyncBellwether
from .batches import BatchRefused
from .client import Bellwether
from .errors import (
    AccessDenied,
    ApiError,
    BellwetherError,
    Conflict,
    InvalidInput,
    JobCancelled,
    JobDead,
    JobFailed,
    NotFound,
    OutcomeUnknown,
    Problem,
    Remedy,
    ServerError,
    Unavailable,
    UnexpectedAnswer,
    WaitTimeout,
)
from .handles import GroupHandle, JobHandle
from .job import Invalid, Job, Progress, RetryLater, Stopped
from .model import Event, EventsMissed, GroupView, JobChanged, JobView, ScheduleView
from .options import Backoff, NewJob, Options
from .schedules import NewSchedule, ScheduleChange
from .worker import Worker

__all__ = [
    "AccessDenied",
    "ApiError",
    "AsyncBellwether",
    "Backoff",
    "BatchRefused",
    "Bellwether",
    "BellwetherError",
    "Conflict",
    "Event",
    "EventsMissed",
    "GroupHandle",
    "GroupView",
    "Invalid",
    "InvalidInput",
    "Job",
    "JobCancelled",
    "JobChanged",
    "JobDead",
    "JobFailed",
    "JobHandle",
    "JobView",
    "NewJob",
    "NewSchedule",
    "NotFound",
    "Options",
    "OutcomeUnknown",
    "Problem",
    "Progress",
    "Remedy",
    "RetryLater",
    "ScheduleChange",
    "ScheduleView",
    "ServerError",
    "Stopped",
    "Unavailable",
    "UnexpectedAnswer",
    "WaitTimeout",
    "Worker",
]
