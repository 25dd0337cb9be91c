"""The servers under comparison, as child processes: ZooKeeper and the keeper.

A server keeps its port and its data when it is stopped and started, as tests that restart it require; `destroy` wipes
the data. It is started with `setpriv --pdeathsig`, so that it is killed when this process ends for any reason. It is
started only when it reports that it serves.
"""

import pathlib
import shutil
import socket
import subprocess
import tempfile
import time

HOST = "127.0.0.1"
# The value of kazoo's harness and of ZooKeeper's example: session timeouts are 4 s to 40 s.
TICK_MS = 2000
# A JVM starts in 0.3 to 2 s; on two busy cores it took ten times that.
START_SECONDS = 60
# SIGTERM takes ZooKeeper about 1.7 s.
STOP_SECONDS = 20
POLL_SECONDS = 0.02
JAR = pathlib.Path("/usr/share/java/zookeeper.jar")
# Not listed in the manifest of Debian's jar: Netty's codec, which TLS needs, and a backend for logging.
MORE_JARS = ["/usr/share/java/netty-codec.jar", "/usr/share/java/slf4j-simple.jar"]


class ServerFailed(Exception):
    """A server did not start; the message contains the end of its log."""


def free_port():
    """A free port. If another process takes it first, our server fails to start."""
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return probe.getsockname()[1]


def four_letter_word(port, word, seconds=2.0):
    """The reply of the server, or an empty string if there is none."""
    try:
        with socket.create_connection((HOST, port), timeout=seconds) as connection:
            connection.sendall(word.encode())
            answer = b""
            while chunk := connection.recv(65536):
                answer += chunk
            return answer.decode(errors="replace")
    except OSError:
        return ""


class Server:
    """A server: its port, its directory, and its process while it runs."""

    name = ""

    def __init__(self):
        self.port = free_port()
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="bellwether-compat-"))
        self.process = None

    # Properties used by kazoo's harness.
    @property
    def address(self):
        return f"{HOST}:{self.port}"

    @property
    def client_port(self):
        return self.port

    @property
    def running(self):
        return self.process is not None

    def command(self):
        """Writes the files of the command line and returns it."""
        raise NotImplementedError

    def run(self):
        """Starts the server unless it runs; returns when it accepts connections."""
        if self.running:
            return
        self.directory.mkdir(exist_ok=True)
        command = ["setpriv", "--pdeathsig", "KILL", *self.command()]
        with self.log_path().open("ab") as log:
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        deadline = time.monotonic() + START_SECONDS
        while "Mode:" not in four_letter_word(self.port, "srvr"):
            status = self.process.poll()
            if status is not None or time.monotonic() > deadline:
                self.stop()
                fate = "does not respond" if status is None else f"ended with {status}"
                raise ServerFailed(f"{self.name} on {self.address} {fate}:\n{''.join(self.get_logs())}")
            time.sleep(POLL_SECONDS)

    def stop(self):
        """Stops the server with SIGTERM, or SIGKILL after a timeout; keeps its data."""
        if not self.running:
            return
        self.process.terminate()
        try:
            self.process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process = None

    def reset(self):
        """Stops the server and wipes its data."""
        self.stop()
        shutil.rmtree(self.directory / "data", ignore_errors=True)

    def destroy(self):
        """Stops the server and removes its directory."""
        self.stop()
        shutil.rmtree(self.directory, ignore_errors=True)

    def log_path(self):
        return self.directory / "server.log"

    def get_logs(self, num_lines=100):
        """The last lines of the log."""
        try:
            return self.log_path().read_text(errors="replace").splitlines(keepends=True)[-num_lines:]
        except FileNotFoundError:
            return []

    def version(self):
        """The version that the server reports."""
        for line in four_letter_word(self.port, "envi").splitlines():
            if line.startswith("zookeeper.version="):
                return line.partition("=")[2].split("-")[0]
        return "unknown"


class ZooKeeper(Server):
    """Debian's ZooKeeper, stand-alone, configured as by kazoo's harness, with TTL znodes enabled."""

    name = "zookeeper"

    def __init__(self, tls=None):
        super().__init__()
        self.tls = tls
        self.secure_port = free_port()

    @property
    def secure_address(self):
        return f"{HOST}:{self.secure_port}"

    def command(self):
        data = self.directory / "data"
        data.mkdir(exist_ok=True)
        lines = [
            f"tickTime={TICK_MS}",
            f"dataDir={data}",
            f"clientPort={self.port}",
            f"clientPortAddress={HOST}",
            "maxClientCnxns=0",
            "admin.enableServer=false",
            "4lw.commands.whitelist=*",
            "extendedTypesEnabled=true",
        ]
        if self.tls:
            lines += self.secure_lines()
        config = self.directory / "zoo.cfg"
        config.write_text("\n".join(lines) + "\n")
        return [
            "java",
            "-cp",
            ":".join([str(JAR), *MORE_JARS]),
            "-Xmx256m",
            "-XX:TieredStopAtLevel=1",
            # The JVM decodes credentials with its default charset; kazoo encodes them as UTF-8.
            "-Dfile.encoding=UTF-8",
            "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
            "org.apache.zookeeper.server.quorum.QuorumPeerMain",
            str(config),
        ]

    def secure_lines(self):
        """Only the Netty factory serves TLS."""
        for store in ("keystore", "truststore"):
            self.tls[store].save(str(self.directory / f"{store}.jks"), "apassword")
        return [
            "serverCnxnFactory=org.apache.zookeeper.server.NettyServerCnxnFactory",
            f"secureClientPort={self.secure_port}",
            f"ssl.keyStore.location={self.directory / 'keystore.jks'}",
            "ssl.keyStore.password=apassword",
            f"ssl.trustStore.location={self.directory / 'truststore.jks'}",
            "ssl.trustStore.password=apassword",
        ]


class Keeper(Server):
    """The keeper's stand-alone example with its data on disk; with `tls_files` its port accepts only TLS."""

    def __init__(self, binary, compat=None, tls_files=None):
        super().__init__()
        self.binary = binary
        self.compat = compat
        self.name = f"keeper --compat {compat}" if compat else "keeper"
        self.listen = self.address
        self.tls_files = tls_files

    @property
    def secure_address(self):
        return self.listen

    def behind(self, front_port):
        """Sets the port of a plain-TCP proxy for this server."""
        self.port = front_port
        return self

    def command(self):
        data = self.directory / "data"
        data.mkdir(exist_ok=True)
        command = [str(self.binary), "--listen", self.listen, "--data-dir", str(data), "--tick-ms", str(TICK_MS)]
        if self.compat:
            command += ["--compat", self.compat]
        if files := self.tls_files:
            command += ["--tls-cert", files["server"], "--tls-key", files["key"]]
            command += ["--tls-client-ca", files["authority"]]
        return command
