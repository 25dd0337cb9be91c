"""Gateways that share a namespace with a server, with tokens and TLS if a test wants them."""

from __future__ import annotations

import json
import ssl
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
import trustme
from eventually import eventually

from bellwether.testing import DevServer, free_port

ROLES = ("read", "submit", "operate", "admin", "work")


@dataclass(frozen=True)
class Gateway:
    """A process with the role `gateway`."""

    url: str
    process: subprocess.Popen[bytes]

    def kill(self) -> None:
        """Ends the gateway with SIGKILL, as a crash."""
        self.process.kill()
        self.process.wait()

    def stop(self) -> None:
        """Ends the gateway with SIGTERM, as an update."""
        self.process.terminate()
        self.process.wait()


@dataclass(frozen=True)
class Access:
    """Files that protect a gateway, and what its callers need."""

    arguments: Sequence[str]
    tokens: Mapping[str, str]
    """A token for each role."""
    authority: Path
    """The certificate of the own authority."""

    def trust(self) -> ssl.SSLContext:
        return ssl.create_default_context(cafile=str(self.authority))


def access(command: str, folder: Path) -> Access:
    """Creates an authority, a certificate for 127.0.0.1, and a token for each role."""
    authority, names = trustme.CA(), ("authority.pem", "server.pem", "server.key", "tokens")
    ca, certificate, key, file = (folder / name for name in names)
    issued = authority.issue_cert("127.0.0.1")
    authority.cert_pem.write_to_path(str(ca))
    certificate.write_bytes(b"".join(pem.bytes() for pem in issued.cert_chain_pems))
    issued.private_key_pem.write_to_path(str(key))
    tokens, lines = {}, []
    for role in ROLES:
        new = [command, "--output", "json", "token", "new", f"py-{role}", "--role", role]
        made = json.loads(subprocess.run(new, check=True, capture_output=True, timeout=30).stdout)
        tokens[role] = made["token"]
        lines.append(made["line"] + "\n")
    file.write_text("".join(lines))
    arguments = ("--http-tokens", str(file), "--http-tls-cert", str(certificate), "--http-tls-key", str(key))
    return Access(arguments, tokens, ca)


@contextmanager
def gateway(command: str, server: DevServer, protected: Access | None = None) -> Iterator[Gateway]:
    """Runs one more gateway of the server's namespace until the end of the block."""
    address = f"127.0.0.1:{free_port()}"
    scheme, arguments = ("http", ()) if protected is None else ("https", tuple(protected.arguments))
    started = [
        command,
        "--zookeeper",
        server.zookeeper,
        "node",
        "--roles",
        "gateway",
        "--http-listen",
        address,
        *arguments,
    ]
    verify = True if protected is None else protected.trust()
    url = f"{scheme}://{address}"

    def ready() -> bool:
        assert process.poll() is None, log_of(log.name)
        try:
            return httpx.get(f"{url}/readyz", verify=verify, timeout=2.0).status_code == 200
        except httpx.TransportError:
            return False

    with tempfile.NamedTemporaryFile() as log:
        process = subprocess.Popen(started, stdout=log, stderr=log)
        try:
            eventually(ready)
            yield Gateway(url, process)
        finally:
            process.kill()
            process.wait()


def log_of(path: str) -> str:
    return Path(path).read_text(errors="replace")[-4000:]
