"""The attempts of a worker, without I/O.

```text
delivered → running → finished → forgotten
               └─ stopped: closed elsewhere ─┘
```

An attempt is listed to the gateway from its delivery until its end is answered, so nothing that runs here is delivered twice, and
a lost answer to a poll is repaired by the next poll.

An attempt keeps the key with which it was delivered. A takeover by another gateway gives it a new token, which all later calls
name: see `Table.named`.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import replace

from ..job import Job, JobFacts, Taken
from .protocol import MAX_BODY_BYTES, MAX_FINISH, Attempt, Beat, Finished, Key, Outcome, Stop

REMEMBERED = 4096
"""Ended attempts that are recognised if an old answer delivers them again."""
OVERHEAD = 512
"""Bytes of an entry beside its outcome or checkpoint: ids have at most 128 characters."""


class Entry:
    """An attempt that has been delivered."""

    def __init__(self, attempt: Attempt, *, renew: bool) -> None:
        self.attempt = attempt
        self.job = Job(attempt.facts)
        self.renew = renew
        self.fencing_token = attempt.facts.fencing_token
        """The token by which the gateway knows the attempt."""
        self.outcome: Outcome | None = None


class Table:
    """All attempts of a worker whose end is not known to the gateway."""

    def __init__(self) -> None:
        self._entries: dict[Key, Entry] = {}
        self._ended: OrderedDict[Key, None] = OrderedDict()
        self._renamed: dict[Key, Key] = {}
        """The key of each entry that was taken over, by its present job and token."""

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def running(self) -> list[Entry]:
        """The attempts whose handlers run."""
        return [entry for entry in self._entries.values() if entry.outcome is None]

    def listed(self) -> list[JobFacts]:
        """Returns the attempts to list in a poll or a registration."""
        return [self.named(entry.attempt.facts) for entry in self._entries.values()]

    def named(self, facts: JobFacts) -> JobFacts:
        """Returns the facts of an attempt with the token by which the gateway knows it now."""
        entry = self._entries.get((facts.id, facts.fencing_token))
        return facts if entry is None else replace(facts, fencing_token=entry.fencing_token)

    def taken_over(self, tokens: Mapping[Key, int]) -> None:
        """Another gateway has taken over these attempts and has given them new tokens."""
        for (job, token), new in tokens.items():
            key = self._renamed.pop((job, token), (job, token))
            entry = self._entries.get(key)
            if entry is not None:
                entry.fencing_token = new
                if (job, new) != key:
                    self._renamed[job, new] = key

    def delivered(self, attempt: Attempt, *, renew: bool) -> Entry | None:
        """Adds an attempt. Returns None if it was delivered before."""
        if attempt.key in self._entries or attempt.key in self._ended or attempt.key in self._renamed:
            return None
        entry = self._entries[attempt.key] = Entry(attempt, renew=renew)
        return entry

    def finished(self, key: Key, outcome: Outcome) -> bool:
        """Stores the outcome of an attempt. Returns False if the attempt is over: the outcome is dropped."""
        entry = self._entries.get(key)
        if entry is None or entry.outcome is not None:
            return False
        entry.outcome = outcome
        return True

    def outcomes(self) -> list[Finished]:
        """Returns the outcomes for one request, oldest attempts first."""
        found: list[Finished] = []
        size = 0
        for entry in self._entries.values():
            if entry.outcome is None:
                continue
            size += OVERHEAD + len(str(entry.outcome).encode(errors="replace"))
            if found and (len(found) == MAX_FINISH or size > MAX_BODY_BYTES):
                break
            found.append(Finished(entry.attempt.facts, entry.outcome))
        return found

    def replace_outcome(self, key: Key, outcome: Outcome) -> None:
        """Replaces an outcome that the gateway does not accept."""
        entry = self._entries.get(key)
        if entry is not None:
            entry.outcome = outcome

    def ended(self, key: Key) -> None:
        """Forgets an attempt whose end the gateway has answered."""
        entry = self._entries.pop(key, None)
        if entry is None:
            return
        present = key[0], entry.fencing_token
        self._renamed.pop(present, None)
        for over in {key, present}:
            self._ended[over] = None
            if len(self._ended) > REMEMBERED:
                self._ended.popitem(last=False)

    def stop(self, stop: Stop) -> Entry | None:
        """Returns the attempt to stop. One that is over is also forgotten, and its outcome is dropped."""
        key = self._renamed.get(stop.key, stop.key)
        entry = self._entries.get(key)
        if entry is None:
            return None
        if stop.reason != "cancelled":
            self.ended(key)
        return entry

    def shortest_lease(self) -> float | None:
        """Returns the shortest lease that has to be renewed."""
        return min((entry.attempt.lease for entry in self.running if entry.renew), default=None)

    def beats(self) -> tuple[list[Beat], list[tuple[Entry, Taken]]]:
        """Returns the heartbeats of attempts that gave a sign of life, and what to restore if they are lost."""
        beats: list[Beat] = []
        taken: list[tuple[Entry, Taken]] = []
        size = 0
        for entry in self.running:
            if size > MAX_BODY_BYTES:
                break
            alive, progress, checkpoint = entry.job.sign.take()
            if alive or entry.renew:
                beats.append(Beat(self.named(entry.attempt.facts), progress, checkpoint))
                taken.append((entry, (alive, progress, checkpoint)))
                size += OVERHEAD + 2 * len(checkpoint or b"") + 2048
        return beats, taken

    def restore(self, taken: Sequence[tuple[Entry, Taken]]) -> None:
        """Restores what a lost heartbeat carried, so the next one carries it."""
        for entry, sign in taken:
            entry.job.sign.put_back(sign)
