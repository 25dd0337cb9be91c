"""A plain-TCP proxy for a server that accepts only TLS.

A port of the keeper is either plain TCP or TLS. ZooKeeper has a port for each, and kazoo's harness checks the plain
port before it tests TLS. This proxy provides the plain port and connects to the server with the client's certificate.
"""

import asyncio
import pathlib
import socket
import ssl
import threading

import OpenSSL.crypto

HOST = "127.0.0.1"
CHUNK = 65536
PEM = OpenSSL.crypto.FILETYPE_PEM


class PlainFront:
    """Listens on `port` until the process ends."""

    def __init__(self, files, behind):
        self.behind = behind
        self.context = ssl.create_default_context(cafile=files["authority"])
        # The harness uses the certificate for another host than the one named in it.
        self.context.check_hostname = False
        self.context.load_cert_chain(files["client"])
        self.socket = socket.create_server((HOST, 0))
        self.port = self.socket.getsockname()[1]
        threading.Thread(target=lambda: asyncio.run(self.serve()), daemon=True).start()

    async def serve(self):
        server = await asyncio.start_server(self.forward, sock=self.socket)
        await server.serve_forever()

    async def forward(self, client_reader, client_writer):
        try:
            reader, writer = await asyncio.open_connection(HOST, self.behind, ssl=self.context)
        except OSError:
            # The server is down: close the connection, as the server would.
            client_writer.close()
            return
        await asyncio.gather(pump(client_reader, writer), pump(reader, client_writer))


async def pump(reader, writer):
    """Copies until one end is closed, then closes the other."""
    try:
        while chunk := await reader.read(CHUNK):
            writer.write(chunk)
            await writer.drain()
    except OSError:
        pass
    finally:
        writer.close()


def version_3(tls):
    """Re-issues the certificates of kazoo's harness, which are X.509 version 1, because rustls rejects that version."""
    for name in ("server", "client"):
        tls[f"{name}_cert"].set_version(2)
        tls[f"{name}_cert"].sign(tls["ca_key"], "sha256")
    return tls | {"client_cert_pem": OpenSSL.crypto.dump_certificate(PEM, tls["client_cert"])}


def write_files(tls, directory):
    """Writes the certificates of the harness as PEM files."""
    files = {name: str(pathlib.Path(directory) / f"{name}.pem") for name in ("server", "key", "client", "authority")}
    contents = {
        "server": OpenSSL.crypto.dump_certificate(PEM, tls["server_cert"]),
        "key": OpenSSL.crypto.dump_privatekey(PEM, tls["server_key"]),
        "client": tls["client_cert_pem"] + tls["client_key_pem"],
        "authority": tls["ca_cert_pem"],
    }
    for name, content in contents.items():
        pathlib.Path(files[name]).write_bytes(content)
    return files
