"""What the sync and the async client have in common: kinds, addresses, and how a submission is built."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any

import httpx

from .exchange import Addresses
from .kinds import F, Kind, Kinds
from .options import IfExists, NewJob, Options, payload_of
from .values import Duration

RETRY_FOR = 30.0
"""Long enough for a gateway to restart and for a namespace to elect another leader."""

LIMITS = httpx.Limits(max_connections=None, max_keepalive_connections=32, keepalive_expiry=5.0)
"""A gateway closes idle connections after 10 s; a connection is not reused when it may be closing."""


class Application:
    """The base of `Bellwether` and `AsyncBellwether`."""

    def __init__(
        self,
        url: str | Sequence[str] = "http://127.0.0.1:8080",
        token: str | None = None,
        *,
        retry_for: float = RETRY_FOR,
        verify: Any = True,
    ) -> None:
        """`url` is the address of a gateway, or of several gateways of the same namespace. `verify` is that of httpx."""
        self.addresses = Addresses(url)
        self.kinds = Kinds()
        self._token = token
        self._retry_for = retry_for
        self.verify = verify

    def use(self, url: str | Sequence[str], token: str | None = None) -> None:
        """Uses other gateways from now on, and another token if one is given: for tests and for `--url`."""
        self.addresses = Addresses(url)
        self._token = token or self._token

    def headers(self) -> dict[str, str]:
        """Returns the headers of every request."""
        return {} if self._token is None else {"authorization": f"Bearer {self._token}"}

    def async_client(self) -> httpx.AsyncClient:
        """Returns an HTTP client with the token and the TLS settings of this application, for a worker."""
        return httpx.AsyncClient(headers=self.headers(), verify=self.verify, limits=LIMITS)

    def kind(
        self,
        name: str,
        *,
        max_attempts: int | None = None,
        timeout: Duration | None = None,
        lease: Duration | None = None,
        auto_renew: bool = False,
        concurrency: int | None = None,
        process: bool = False,
        whole: bool = False,
        options: Options | None = None,
    ) -> Callable[[F], F]:
        """Declares the handler of a kind. The function itself is returned unchanged.

        `max_attempts`, `timeout` and `options` are defaults for jobs that this application submits. `lease`, `auto_renew`
        (renew while the handler runs) and `concurrency` (at most this many at a time per worker) belong to the worker.
        `process` runs the handler in a process of the worker's pool. `whole` passes the payload as one argument, instead of
        the fields of an object as keyword arguments.
        """

        def declare(handler: F) -> F:
            given = Options(max_attempts=max_attempts, timeout=timeout).over(options)
            self.kinds.add(Kind(name, handler, given, lease, auto_renew, concurrency, process, whole))
            return handler

        return declare

    def job(
        self,
        kind: str | Callable[..., Any],
        /,
        *,
        id: str | None = None,  # noqa: A002
        named: str | None = None,
        payload: Any = None,
        content_type: str | None = None,
        options: Options | None = None,
        delay: Duration | None = None,
        run_at: datetime | str | None = None,
        expires_in: Duration | None = None,
        expires_at: datetime | str | None = None,
        if_exists: IfExists = "same",
        **fields: Any,
    ) -> NewJob:
        """Returns a job to submit with `submit_many`, with the arguments of `submit`."""
        name, defaults = self.kinds.named(kind)
        return NewJob(
            kind=name,
            id=id,
            named=named,
            payload=payload_of(payload, fields),
            content_type=content_type,
            options=(options or Options()).over(defaults),
            delay=delay,
            run_at=run_at,
            expires_in=expires_in,
            expires_at=expires_at,
            if_exists=if_exists,
        )

    async def serve(
        self,
        *,
        slots: int | None = None,
        processes: bool | int = False,
        node_id: str | None = None,
        tags: Sequence[str] = (),
        drain_grace: Duration = 30,
        session_timeout: Duration = 30,
    ) -> None:
        """Runs a worker on the current event loop until its task is cancelled, which drains it."""
        from .worker import Worker

        await Worker(
            self,
            slots=slots,
            processes=processes,
            node_id=node_id,
            tags=tags,
            drain_grace=drain_grace,
            session_timeout=session_timeout,
        ).serve()

    def run(
        self,
        *,
        slots: int | None = None,
        processes: bool | int = False,
        node_id: str | None = None,
        tags: Sequence[str] = (),
        drain_grace: Duration = 30,
        session_timeout: Duration = 30,
    ) -> None:
        """Runs a worker until SIGTERM or SIGINT; then it drains. A second signal ends the process immediately.

        `slots` is the number of jobs at a time; by default the number of processors, but at least 4. `processes` runs all
        plain functions in a pool of processes (True: one per CPU), instead of only kinds with `process=True`. `drain_grace`
        is the time for running jobs to end in a drain; jobs that still run are handed back. After `session_timeout` without
        a call the gateway counts the worker's jobs as lost.
        """
        from .worker import Worker

        Worker(
            self,
            slots=slots,
            processes=processes,
            node_id=node_id,
            tags=tags,
            drain_grace=drain_grace,
            session_timeout=session_timeout,
        ).run()
