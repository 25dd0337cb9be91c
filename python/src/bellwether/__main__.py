"""`python -m bellwether worker MODULE:APP`."""

from __future__ import annotations

import argparse
import importlib
import logging
import sys
from collections.abc import Sequence
from pathlib import Path

from .application import Application
from .errors import BellwetherError, InvalidInput
from .values import seconds_of


def _application(text: str) -> Application:
    """Loads an application by its name, as uvicorn and gunicorn do."""
    module, _, name = text.partition(":")
    sys.path.insert(0, str(Path.cwd()))
    try:
        found: object = importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module}.".startswith(f"{error.name}."):
            raise  # an import inside the module
        raise SystemExit(f"there is no module {module}") from error
    for part in (name or "app").split("."):
        found = getattr(found, part, None)
    if not isinstance(found, Application):
        raise SystemExit(f"{text} is not a Bellwether or AsyncBellwether: give MODULE:NAME")
    return found


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m bellwether", description="Tools of the Python package of Bellwether"
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    worker = commands.add_parser(
        "worker", help="run a worker until SIGTERM or Ctrl-C; a second signal ends it immediately"
    )
    worker.add_argument("application", metavar="MODULE:APP", help="where the application is declared")
    worker.add_argument("--url", action="append", help="address of a gateway instead of the declared ones; repeatable")
    worker.add_argument(
        "--slots", type=int, help="number of jobs at a time (default: the number of processors, but at least 4)"
    )
    worker.add_argument(
        "--processes",
        type=int,
        nargs="?",
        const=-1,
        default=0,
        metavar="N",
        help="run plain functions in N processes (without N: one per CPU)",
    )
    worker.add_argument("--node-id", help="id of the process for operators (default: host name and process id)")
    worker.add_argument(
        "--tags",
        type=_names,
        action="extend",
        default=[],
        metavar="TAG,…",
        help="tags that this worker offers, separated by commas",
    )
    worker.add_argument(
        "--drain-grace",
        type=_duration,
        default=30.0,
        metavar="DURATION",
        help="time for running jobs to end in a drain, such as 30s or 5m (default: 30s)",
    )
    worker.add_argument(
        "--session-timeout",
        type=_duration,
        default=30.0,
        metavar="DURATION",
        help="silence after which its jobs count as lost, 2s to 1h (default: 30s)",
    )
    worker.add_argument("-v", "--verbose", action="store_true", help="log every step")
    return parser


def _duration(text: str) -> float:
    try:
        return seconds_of(text)
    except InvalidInput as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def _names(text: str) -> list[str]:
    return text.split(",") if text else []


def main(arguments: Sequence[str] | None = None) -> None:
    """Runs a command."""
    given = _parser().parse_args(arguments)
    level = logging.DEBUG if given.verbose else logging.INFO
    logging.basicConfig(level=level, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    if not given.verbose:
        logging.getLogger("httpx").setLevel(logging.WARNING)
    app = _application(given.application)
    processes: bool | int = True if given.processes == -1 else given.processes
    try:
        if given.url:
            app.use(given.url)
        app.run(
            slots=given.slots,
            processes=processes,
            node_id=given.node_id,
            tags=given.tags,
            drain_grace=given.drain_grace,
            session_timeout=given.session_timeout,
        )
    except BellwetherError as error:
        raise SystemExit(f"bellwether: {error}") from error


if __name__ == "__main__":
    main()
