"""TLS for a server that has none: terminates it on a port of its own, and asks for the client's certificate.

What an operator would put before the keeper (stunnel, a service mesh). It shows that kazoo's TLS works through such a
front; that the keeper itself speaks no TLS is said in the report.
"""

import asyncio
import pathlib
import socket
import ssl
import tempfile
import threading

import OpenSSL.crypto

HOST = "127.0.0.1"
CHUNK = 65536


class TlsFront:
    """Listens from its creation to the end of the process, on `port`."""

    def __init__(self, tls, behind):
        self.behind = behind
        self.context = server_context(tls)
        self.socket = socket.create_server((HOST, 0))
        self.port = self.socket.getsockname()[1]
        threading.Thread(target=lambda: asyncio.run(self.serve()), daemon=True).start()

    async def serve(self):
        server = await asyncio.start_server(self.forward, sock=self.socket, ssl=self.context)
        await server.serve_forever()

    async def forward(self, client_reader, client_writer):
        try:
            reader, writer = await asyncio.open_connection(HOST, self.behind)
        except OSError:
            # The server is down: the client sees what it would see there.
            client_writer.close()
            return
        await asyncio.gather(pump(client_reader, writer), pump(reader, client_writer))


async def pump(reader, writer):
    """Copies until either end is gone, then closes the other."""
    try:
        while chunk := await reader.read(CHUNK):
            writer.write(chunk)
            await writer.drain()
    except OSError:
        pass
    finally:
        writer.close()


def server_context(tls):
    """From the certificates that kazoo's harness makes."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.verify_mode = ssl.CERT_REQUIRED
    pem = OpenSSL.crypto.FILETYPE_PEM
    with tempfile.TemporaryDirectory(prefix="bellwether-compat-") as directory:
        chain = pathlib.Path(directory) / "chain.pem"
        key = OpenSSL.crypto.dump_privatekey(pem, tls["server_key"])
        chain.write_bytes(OpenSSL.crypto.dump_certificate(pem, tls["server_cert"]) + key)
        context.load_cert_chain(chain)
    context.load_verify_locations(cadata=tls["ca_cert_pem"].decode())
    return context
