"""Kinds of jobs: handlers, the defaults of their options, and how a payload becomes arguments."""

from __future__ import annotations

import inspect
import re
import typing
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

from .errors import InvalidInput
from .job import Invalid, Job
from .options import Options
from .values import Duration

F = TypeVar("F", bound=Callable[..., Any])

_NAME = re.compile(r"[A-Za-z0-9._-]{1,128}")


@dataclass(frozen=True)
class Kind:
    """A kind with its handler."""

    name: str
    handler: Callable[..., Any]
    options: Options
    lease: Duration | None
    auto_renew: bool
    concurrency: int | None
    process: bool
    whole: bool

    @property
    def is_async(self) -> bool:
        return inspect.iscoroutinefunction(self.handler)

    def arguments(self, payload: Any, job: Job) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Returns the handler's arguments. Raises `Invalid` if the payload does not match its parameters."""
        signature = inspect.signature(self.handler)
        wanted = job_parameter(self.handler)
        extra = {} if wanted is None else {wanted: job}
        if isinstance(payload, dict) and not self.whole:
            positional: tuple[Any, ...] = ()
            clash = wanted in payload
            named = {**payload, **extra}
        else:
            positional, named, clash = (
                (() if payload is None and not self.whole else (payload,)),
                extra,
                False,
            )
        try:
            if clash:
                raise TypeError(f"field {wanted!r} has the name of the parameter for the job")  # noqa: TRY301
            signature.bind(*positional, **named)
        except TypeError as error:
            raise Invalid(f"the payload does not match the handler of kind {self.name}: {error}") from error
        return positional, named


def job_parameter(handler: Callable[..., Any]) -> str | None:
    """Returns the name of the parameter with the annotation `Job`."""
    try:
        hints = typing.get_type_hints(handler)
    except NameError:  # an annotation that exists only for type checkers
        hints = dict(getattr(handler, "__annotations__", {}))
    for name, hint in hints.items():
        if name != "return" and (hint is Job or hint in ("Job", "bellwether.Job")):
            return name
    return None


class Kinds:
    """The kinds that an application has declared, by name."""

    def __init__(self) -> None:
        self._kinds: dict[str, Kind] = {}

    def __iter__(self) -> Iterator[Kind]:
        return iter(self._kinds.values())

    def __len__(self) -> int:
        return len(self._kinds)

    def get(self, name: str) -> Kind | None:
        return self._kinds.get(name)

    def add(self, kind: Kind) -> None:
        """Adds a kind. Raises `InvalidInput` for an invalid declaration."""
        if not _NAME.fullmatch(kind.name):
            raise InvalidInput(f"{kind.name!r} is not the name of a kind: 1 to 128 of A-Z a-z 0-9 . _ -")
        known = self._kinds.get(kind.name)
        if known is not None and known.handler.__qualname__ != kind.handler.__qualname__:
            raise InvalidInput(f"kind {kind.name} has two handlers: {known.handler!r} and {kind.handler!r}")
        if kind.process and kind.is_async:
            raise InvalidInput(f"kind {kind.name}: an async function runs on the event loop, not in a process")
        if kind.concurrency is not None and kind.concurrency < 1:
            raise InvalidInput(f"kind {kind.name}: concurrency must be at least 1, not {kind.concurrency}")
        kind.options.document()  # refuses invalid durations where they are declared
        self._kinds[kind.name] = kind

    def named(self, kind: str | Callable[..., Any]) -> tuple[str, Options | None]:
        """Returns the name and the default options of a kind, given by its name or its handler."""
        if isinstance(kind, str):
            known = self._kinds.get(kind)
            return kind, None if known is None else known.options
        for known in self:
            if known.handler is kind:
                return known.name, known.options
        raise InvalidInput(f"{kind!r} is not the handler of a kind of this application")
