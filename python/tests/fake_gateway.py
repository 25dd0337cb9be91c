"""A gateway for unit tests of the worker: the protocol of remote workers in memory, with faults on demand."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from eventually import eventually

Document = dict[str, Any]


class FakeGateway:
    """Delivers the attempts that a test adds, and records how they end."""

    def __init__(self) -> None:
        self.lock = threading.Condition()
        self.registrations: list[Document] = []
        self.calls: list[tuple[str, Document]] = []
        self.attempts: dict[str, Document] = {}
        self.ended: dict[str, Document] = {}
        self.stops: list[Document] = []
        self.fenced: set[str] = set()
        self.left = False
        self.drained = False
        self.known = False
        self.lose: dict[str, int] = {}
        """How many answers to lose, by the last part of the path."""
        self.refuse: Callable[[str, Document], tuple[int, Document] | None] = lambda _name, _body: None
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def deliver(self, job: str, kind: str, payload: Any = None, **fields: Any) -> None:
        attempt = {"job": job, "kind": kind, "generation": 1, "attempt": 1, "fencing_token": 7, "priority": 5}
        attempt["submission"] = f"s-{job}"
        attempt |= {"payload": {"json": payload}, "lease": "1m", "timeout": None, **fields}
        with self.lock:
            self.attempts[job] = attempt
            self.lock.notify_all()

    def stop(self, job: str, reason: str) -> None:
        with self.lock:
            attempt = self.attempts.pop(job) if reason != "cancelled" else self.attempts[job]
            self.stops.append({"job": job, "attempt": 1, "fencing_token": attempt["fencing_token"], "reason": reason})
            self.lock.notify_all()

    def forget_worker(self) -> None:
        """Loses the worker, as a gateway that has restarted."""
        with self.lock:
            self.known = False
            self.lock.notify_all()

    def outcome(self, job: str, within: float = 20.0) -> Document:
        """Waits for the outcome of a job."""
        found: Document = eventually(lambda: self.ended.get(job), within)
        return found

    def bodies(self, name: str) -> list[Document]:
        with self.lock:
            return [body for called, body in self.calls if called == name]

    # The protocol

    def answer(self, method: str, path: str, body: Document) -> tuple[int, Document | None]:
        name = {"PUT": "register", "DELETE": "leave"}.get(method, path.rsplit("/", 1)[-1])
        with self.lock:
            self.calls.append((name, body))
            refusal = self.refuse(name, body)
            if refusal is not None:
                return refusal
            if name == "register":
                self.known = True
                self.registrations.append(body)
                return 200, {"worker": f"w-{len(self.registrations)}", "session_timeout": body["session_timeout"]}
            if name == "leave":
                self.left = True
                return 204, None
            if not self.known:
                return 404, problem(404, "remote-worker-unknown")
            if name == "drain":
                self.drained = True
                return 204, None
            return 200, {"poll": self._poll, "heartbeat": self._heartbeat, "finish": self._finish}[name](body)

    def _new(self, body: Document) -> list[Document]:
        running = {one["job"] for one in body["running"]}
        # Also in a drain: an answer may have been on its way when the drain began.
        return [attempt for job, attempt in self.attempts.items() if job not in running and job not in self.ended]

    def _poll(self, body: Document) -> Document:
        waiting = self.lock.wait_for(lambda: self._new(body) or self._stops(body) or not self.known, 1.0)
        del waiting
        return {"attempts": self._new(body)[: body["limit"]], "stop": self._stops(body), "draining": False}

    def _stops(self, body: Document) -> list[Document]:
        running = {(one["job"], one["fencing_token"]) for one in body["running"]}
        return [stop for stop in self.stops if (stop["job"], stop["fencing_token"]) in running]

    def _heartbeat(self, body: Document) -> Document:
        return {"stop": self._stops(body), "draining": False}

    def _finish(self, body: Document) -> Document:
        results = []
        for one in body["attempts"]:
            job = one["job"]
            status = "closed"
            if job in self.fenced:
                status = "fenced"
            else:
                self.ended[job] = one["outcome"]
            results.append({"job": job, "attempt": one["attempt"], "status": status})
        self.lock.notify_all()
        return {"results": results}

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        gateway = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def handle_call(self) -> None:
                length = int(self.headers.get("content-length") or 0)
                body = json.loads(self.rfile.read(length)) if length else {}
                status, document = gateway.answer(self.command, self.path, body)
                name = self.path.rsplit("/", 1)[-1]
                with gateway.lock:
                    lost = gateway.lose.get(name, 0)
                    gateway.lose[name] = max(lost - 1, 0)
                if lost:
                    self.close_connection = True
                    return
                content = b"" if document is None else json.dumps(document).encode()
                with suppress(OSError):
                    self.send_response(status)
                    self.send_header("content-length", str(len(content)))
                    self.end_headers()
                    self.wfile.write(content)

            do_PUT = do_POST = do_DELETE = handle_call  # noqa: N815

            def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
                """Prints nothing: pytest shows the worker's log."""

        return Handler


def problem(status: int, word: str) -> Document:
    return {"type": f"urn:bellwether:problem:{word}", "title": word, "status": status, "detail": word}
