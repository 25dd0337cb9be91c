"""A gateway with HTTPS, an authority of its own, and tokens."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from gateways import Access, access, gateway

from bellwether import AccessDenied, AsyncBellwether, Bellwether, JobChanged, Unavailable
from bellwether.testing import DevServer, running_worker
from bellwether.values import new_id


@dataclass(frozen=True)
class Protected:
    url: str
    access: Access

    def app(self, role: str | None) -> Bellwether:
        token = None if role is None else self.access.tokens[role]
        return Bellwether(self.url, token, verify=self.access.trust(), retry_for=5)


@pytest.fixture(scope="module")
def protected(command: str, server: DevServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Protected]:
    files = access(command, tmp_path_factory.mktemp("access"))
    with gateway(command, server, files) as one:
        yield Protected(one.url, files)


def test_each_role_allows_what_it_includes(protected: Protected) -> None:
    kind = f"roles-{new_id()}"
    with protected.app("submit") as app:
        job = app.submit(kind, payload=[1])
        assert job.show().state == "queued"
        with pytest.raises(AccessDenied) as denied:
            app.pause_kind(kind)
        assert denied.value.problem is not None
        assert denied.value.problem.word == "forbidden"
    with protected.app("read") as app:
        assert app.get(job.id).state == "queued"
        with pytest.raises(AccessDenied):
            app.submit(kind, payload=[2])
    with protected.app("operate") as app:
        assert app.submit(kind, payload=[3]).show().state == "queued"
        app.pause_kind(kind)
        app.resume_kind(kind)
        app.cancel(job.id)


@pytest.mark.parametrize("token", [None, "wrong"])
def test_a_missing_or_wrong_token_is_denied_without_a_repetition(protected: Protected, token: str | None) -> None:
    with (
        Bellwether(protected.url, token, verify=protected.access.trust()) as app,
        pytest.raises(AccessDenied) as denied,
    ):
        app.submit("sum", payload=[1])
    assert denied.value.problem is not None
    assert denied.value.problem.word == "unauthenticated"


def test_both_clients_wait_list_and_follow_over_https(protected: Protected) -> None:
    async def submit() -> str:
        token, trust = protected.access.tokens["submit"], protected.access.trust()
        async with AsyncBellwether(protected.url, token, verify=trust) as app, app.events(kind="sum") as events:
            job = await app.submit("sum", payload=[1, 2])
            assert await job.result(timeout=30) == 3
            async for event in events:
                if isinstance(event, JobChanged) and event.job == job.id:
                    break
            return job.id

    submitted = asyncio.run(submit())
    with protected.app("submit") as app, app.events(kind="sum") as events:
        assert app.get(submitted).result == 3
        job = app.submit("sum", payload=[2, 2])
        assert any(isinstance(event, JobChanged) and event.job == job.id for event in events)


def test_a_worker_needs_the_role_work(protected: Protected) -> None:
    kind = f"access-{new_id()}"
    with protected.app("work") as app:
        app.kind(kind)(lambda n: n + 1)
        with running_worker(app), protected.app("submit") as client:
            assert client.submit(kind, n=1).result(timeout=30) == 2
    with protected.app("operate") as app:
        app.kind(kind)(lambda n: n + 1)
        with pytest.raises(AccessDenied, match="work"):
            app.run(slots=1)


def test_a_certificate_of_an_unknown_authority_is_refused(protected: Protected) -> None:
    with (
        Bellwether(protected.url, protected.access.tokens["read"], retry_for=0) as app,
        pytest.raises(Unavailable, match="certificate verify failed"),
    ):
        app.submit("sum", payload=[1])
