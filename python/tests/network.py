"""A TCP proxy that cuts connections and drops answers."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress


class Proxy:
    """Forwards connections to a port of 127.0.0.1, until it is told otherwise."""

    def __init__(self, port: int) -> None:
        self._target = port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self._lock = threading.Lock()
        self._open: set[socket.socket] = set()
        self._cut = False
        self._dropped = 0
        self._marker = b""
        self._thread = threading.Thread(target=self._accept, daemon=True)
        self._thread.start()

    def cut(self) -> None:
        """Resets all connections, and refuses new ones until `heal`."""
        with self._lock:
            self._cut = True
            connections, self._open = list(self._open), set()
        for connection in connections:
            _close(connection)

    def heal(self) -> None:
        with self._lock:
            self._cut = False

    def drop_answers(self, count: int, marker: bytes) -> None:
        """Forwards the next requests that contain the marker, and resets their connections instead of answering."""
        with self._lock:
            self._dropped, self._marker = count, marker

    @property
    def to_drop(self) -> int:
        """Answers that are still to be dropped."""
        with self._lock:
            return self._dropped

    def close(self) -> None:
        _close(self._listener)
        self.cut()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            with self._lock:
                refused = self._cut
            if refused:
                _close(client)
                continue
            try:
                server = socket.create_connection(("127.0.0.1", self._target), timeout=5)
            except OSError:
                _close(client)
                continue
            server.settimeout(None)
            with self._lock:
                self._open |= {client, server}
            lost = threading.Event()
            for source, sink, requests in ((client, server, True), (server, client, False)):
                threading.Thread(target=self._forward, args=(source, sink, requests, lost), daemon=True).start()

    def _forward(self, source: socket.socket, sink: socket.socket, requests: bool, lost: threading.Event) -> None:
        with suppress(OSError):
            while data := source.recv(65536):
                if requests:
                    with self._lock:
                        if self._dropped and self._marker in data:
                            self._dropped -= 1
                            lost.set()
                elif lost.is_set():
                    break  # the server has answered, so the request was applied
                sink.sendall(data)
        _close(source)
        _close(sink)
        with self._lock:
            self._open -= {source, sink}


def _close(connection: socket.socket) -> None:
    with suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)
    connection.close()
