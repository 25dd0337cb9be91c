"""For tests of applications: a server and a worker of their own, and `make_job` for tests of handlers alone.

```python
from bellwether.testing import dev_server, running_worker

with dev_server() as server:
    app.use(server.url)
    with running_worker(app):
        ...
```
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import httpx

from .application import Application
from .errors import BellwetherError
from .job import make_job
from .worker import Worker

__all__ = ["DevServer", "DevServerError", "WorkerFailed", "dev_server", "free_port", "make_job", "running_worker"]

COMMAND = "BELLWETHER_COMMAND"
"""Environment variable with the path of the binary."""
READY_WITHIN = 30.0
STOP_WITHIN = 10.0
REGISTERED_WITHIN = 20.0
DRAINED_WITHIN = 30.0
CHECK_READY = 0.02


class DevServerError(BellwetherError):
    """The server did not start. The message has the end of its log."""


class WorkerFailed(BellwetherError):
    """The worker did not register, ended by an exception, which is the cause, or did not end."""


def free_port() -> int:
    """Returns a port of 127.0.0.1 that was free a moment ago."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port


class DevServer:
    """A `bellwether dev` process: a gateway, a node and an embedded server."""

    def __init__(
        self, command: str | None = None, *, data_dir: str | Path | None = None, arguments: Sequence[str] = ()
    ) -> None:
        """Without `data_dir` the jobs are kept in memory, and `restart` loses them."""
        found = command or os.environ.get(COMMAND) or shutil.which("bellwether")
        if found is None:
            raise DevServerError(f"the binary bellwether is not in PATH: install it, or set {COMMAND}")
        self.http_port, self.keeper_port = free_port(), free_port()
        self.url = f"http://127.0.0.1:{self.http_port}"
        self.zookeeper = f"127.0.0.1:{self.keeper_port}/bellwether"
        self._arguments = [found, "dev", "--http-listen", f"127.0.0.1:{self.http_port}"]
        self._arguments += ["--listen", f"127.0.0.1:{self.keeper_port}", *arguments]
        if data_dir is not None:
            self._arguments += ["--data-dir", str(data_dir)]
        self._log: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - closed by `stop`
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Starts the server, and returns when its gateway is ready."""
        self._process = subprocess.Popen(self._arguments, stdout=self._log, stderr=self._log)  # noqa: S603
        deadline = time.monotonic() + READY_WITHIN
        while not self._ready():
            if self._process.poll() is not None or time.monotonic() > deadline:
                code = self._process.poll()
                self.kill()
                raise DevServerError(f"the server is not ready (exit code {code}):\n{self.log()[-4000:]}")
            time.sleep(CHECK_READY)

    def _ready(self) -> bool:
        try:
            ready = httpx.get(f"{self.url}/readyz", timeout=2.0)
        except httpx.TransportError:
            return False
        return ready.status_code == 200

    def log(self) -> str:
        """Returns what the server has printed."""
        self._log.seek(0)
        return self._log.read().decode(errors="replace")

    def kill(self) -> None:
        """Ends the server with SIGKILL, as a crash."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait()

    def terminate(self) -> None:
        """Stops the server with SIGTERM; it drains first."""
        if self._process is not None:
            self._process.send_signal(signal.SIGTERM)
            try:
                self._process.wait(STOP_WITHIN)
            except subprocess.TimeoutExpired:
                self.kill()
            self._process = None

    def restart(self) -> None:
        """Kills the server and starts it again on the same ports."""
        self.kill()
        self.start()

    def stop(self) -> None:
        """Ends the server and discards its log."""
        self.kill()
        self._log.close()


@contextmanager
def dev_server(
    command: str | None = None, *, data_dir: str | Path | None = None, arguments: Sequence[str] = ()
) -> Iterator[DevServer]:
    """Runs `bellwether dev` on free ports, ready for requests, until the end of the block."""
    server = DevServer(command, data_dir=data_dir, arguments=arguments)
    try:
        server.start()
        yield server
    finally:
        server.stop()


@contextmanager
def running_worker(app: Application, **options: Any) -> Iterator[Worker]:
    """Runs a worker on a thread, with the options of `Worker`, until the end of the block; it is registered before.

    At the end it drains: running jobs have `drain_grace` seconds. Raises `WorkerFailed`.
    """
    options = {"slots": 4, "drain_grace": 5.0, **options}
    worker = Worker(app, **options)
    errors: list[BaseException] = []

    def run() -> None:
        try:
            worker.run()
        except BaseException as error:  # noqa: BLE001 - raised in the thread of the test
            errors.append(error)

    thread = threading.Thread(target=run, name="bellwether-worker")
    thread.start()
    try:
        deadline = time.monotonic() + REGISTERED_WITHIN
        while not worker.registered.wait(CHECK_READY):
            if errors or time.monotonic() > deadline:
                raise WorkerFailed("the worker did not register") from (errors[0] if errors else None)
        yield worker
    finally:
        worker.stop()
        thread.join(options["drain_grace"] + DRAINED_WITHIN)
    if thread.is_alive():
        raise WorkerFailed("the worker did not end")
    if errors:
        raise WorkerFailed("the worker ended by an exception") from errors[0]
