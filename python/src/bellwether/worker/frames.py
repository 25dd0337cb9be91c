"""The part of a traceback that is of interest to the author of a handler."""

from __future__ import annotations

import traceback
from types import TracebackType

PACKAGE = __name__.split(".", maxsplit=1)[0]

ExcInfo = tuple[type[BaseException], BaseException, TracebackType | None]


def of_handler(error: BaseException) -> ExcInfo:
    """Returns `exc_info` without the frames in which this package called the handler. Without frames of the handler, the
    traceback is None."""
    return type(error), error, _after_package(error.__traceback__)


def text_of_handler(error: BaseException) -> str:
    """Returns the same as text."""
    return "".join(traceback.format_exception(*of_handler(error)))


def _after_package(frames: TracebackType | None) -> TracebackType | None:
    while frames is not None and _is_package(frames.tb_frame.f_globals.get("__name__")):
        frames = frames.tb_next
    return frames


def _is_package(module: object) -> bool:
    return isinstance(module, str) and (module == PACKAGE or module.startswith(f"{PACKAGE}."))
