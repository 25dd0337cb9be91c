#!/usr/bin/env python3
"""Measures an honest caller of a gateway while others attack it, under hard limits of memory and descriptors.

    crates/server/tests/http/abuse/run.py --binary target/release/bellwether [--rounds 3] [--seconds 3] [ATTACK…]

Starts `bellwether dev` with --max-memory MiB (a cgroup if this user may create one, else RLIMIT_DATA) and --descriptors. The honest
caller submits small jobs, one after another, on one connection from 127.0.0.2. The attackers are processes with the scheduling class
SCHED_IDLE: they get the processors only while the gateway and the honest caller do not need them, as if they ran on other machines.

Prints for each round the submissions per second before the attack, at its beginning, later, and after it. The share is the least
rate under attack in relation to the mean of those without it, so that a slow change of the machine's load matters less. Also prints
the milliseconds of a processor that the gateway, with its keeper and node, used per submission without the attack and under it: they
depend less on the load. Exit code 1 if the process ended.
"""

import argparse
import dataclasses
import json
import multiprocessing
import os
import pathlib
import resource
import selectors
import socket
import statistics
import subprocess
import sys
import time

HOST = "127.0.0.1"
CGROUPS = pathlib.Path("/sys/fs/cgroup/memory")
READY_SECONDS = 60
PAYLOAD = "\x01" * 60_000


def main():
    arguments = parse()
    print("| attack | round | before | at its beginning | later | after | least share | ms per job alone | ms per job attacked |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    ended = False
    for name in arguments.attacks or ATTACKS:
        shares = []
        for round_ in range(1, arguments.rounds + 1):
            with Server(arguments) as server:
                ATTACKS[name](server)
                honest = Honest(server)
                honest.measure(1)
                before = honest.measure(arguments.seconds)
                attackers = start(name, server)
                attacked = [honest.measure(arguments.seconds) for _ in range(2)]
                for attacker in attackers:
                    attacker.kill()
                honest.measure(1)
                after = honest.measure(arguments.seconds)
                alive = server.process.poll() is None
                ended |= not alive
                alone = Sample.sum(before, after)
                shares.append(min(sample.rate for sample in attacked) / alone.rate)
                rates = " | ".join(f"{sample.rate:.0f}" for sample in (before, *attacked, after))
                costs = f"{alone.cost:.2f} | {Sample.sum(*attacked).cost:.2f}"
                state = "" if alive else " (the process ended)"
                print(f"| {name} | {round_} | {rates} | {shares[-1]:.0%}{state} | {costs} |", flush=True)
        print(f"| {name} | median | | | | | {statistics.median(shares):.0%} | | |", flush=True)
    return 1 if ended else 0


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", type=pathlib.Path, required=True)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=3)
    parser.add_argument("--max-memory", type=int, default=512, help="MiB")
    parser.add_argument("--descriptors", type=int, default=1_024)
    parser.add_argument("attacks", nargs="*", metavar="ATTACK", help=", ".join(ATTACKS))
    arguments = parser.parse_args()
    if unknown := set(arguments.attacks) - set(ATTACKS):
        parser.error(f"unknown attacks: {', '.join(sorted(unknown))}")
    return arguments


class Server:
    """A keeper and a node in one process."""

    def __init__(self, arguments):
        self.http, self.metrics = free_port(), free_port()
        # Half of the descriptors are for the gateway; each address has a quarter of its connections.
        connections = arguments.descriptors // 2
        self.command = [
            *(arguments.binary.resolve(), "dev", "--roles", "candidate,worker,gateway"),
            *("--http-listen", f"{HOST}:{self.http}", "--metrics-listen", f"{HOST}:{self.metrics}"),
            *("--http-connections", str(connections), "--http-connections-per-address", str(connections // 4)),
        ]
        self.bytes = arguments.max_memory * 1024 * 1024
        self.descriptors = arguments.descriptors
        self.group = CGROUPS / f"bellwether-abuse-{os.getpid()}"

    def __enter__(self):
        in_group = self.make_group()

        def limit():
            resource.setrlimit(resource.RLIMIT_NOFILE, (self.descriptors, self.descriptors))
            if in_group:
                (self.group / "cgroup.procs").write_text(str(os.getpid()))
            else:
                resource.setrlimit(resource.RLIMIT_DATA, (self.bytes, self.bytes))

        environment = {name: value for name, value in os.environ.items() if not name.startswith("BELLWETHER_")}
        streams = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        self.process = subprocess.Popen(self.command, env=environment, preexec_fn=limit, **streams)
        deadline = time.monotonic() + READY_SECONDS
        while time.monotonic() < deadline:
            try:
                if call(connect(self.http), "GET /readyz")[0] == 200:
                    return self
            except OSError:
                pass
            if self.process.poll() is not None:
                sys.exit(f"the server ended with {self.process.returncode}")
            time.sleep(0.1)
        sys.exit("the server is not ready in time")

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        if self.group.exists():
            self.group.rmdir()

    def processor_seconds(self):
        fields = pathlib.Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        user, system = fields[11:13]
        return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")

    def make_group(self):
        try:
            self.group.mkdir()
            (self.group / "memory.limit_in_bytes").write_text(str(self.bytes))
            return True
        except OSError:
            return False


@dataclasses.dataclass
class Sample:
    """What happened in a time: jobs that were submitted, and seconds of a processor that the server used."""

    seconds: float
    jobs: int
    processor: float

    @property
    def rate(self):
        return self.jobs / self.seconds

    @property
    def cost(self):
        """Milliseconds per job."""
        return 1_000 * self.processor / self.jobs

    @classmethod
    def sum(cls, *samples):
        return cls(*(sum(values) for values in zip(*map(dataclasses.astuple, samples))))


class Honest:
    """A caller that submits one job after another."""

    def __init__(self, server):
        self.server, self.number = server, 0
        self.stream = connect(server.http, "127.0.0.2")

    def measure(self, seconds):
        begun, used, done = time.monotonic(), self.server.processor_seconds(), 0
        while (passed := time.monotonic() - begun) < seconds:
            self.number += 1
            body = json.dumps({"kind": "echo", "id": f"honest-{self.number}", "payload": self.number})
            status, _ = call(self.stream, "POST /v1/jobs", body)
            if status != 201:
                raise SystemExit(f"the honest caller got {status}")
            done += 1
        return Sample(passed, done, self.server.processor_seconds() - used)


def free_port():
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return probe.getsockname()[1]


def connect(port, source=None):
    stream = socket.create_connection((HOST, port), timeout=30, source_address=source and (source, 0))
    stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return stream


def request(line, body=None):
    content = body.encode() if body is not None else b""
    head = f"{line} HTTP/1.1\r\nHost: localhost\r\n"
    if body is not None:
        head += f"Content-Type: application/json\r\nContent-Length: {len(content)}\r\n"
    return f"{head}\r\n".encode() + content


def call(stream, line, body=None):
    """Sends a request and reads its answer, which has a length."""
    stream.sendall(request(line, body))
    answer = b""
    while b"\r\n\r\n" not in answer:
        part = stream.recv(65_536)
        if not part:
            raise ConnectionError("closed")
        answer += part
    head, _, rest = answer.partition(b"\r\n\r\n")
    lines = head.decode().lower().split("\r\n")
    length = next((int(line[15:]) for line in lines if line.startswith("content-length:")), 0)
    while len(rest) < length:
        rest += stream.recv(65_536)
    return int(lines[0].split()[1]), rest


def start(name, server):
    attackers = [multiprocessing.Process(target=attack, args=(HOSTILE[name], server.http, server.metrics)) for _ in range(2)]
    for attacker in attackers:
        attacker.start()
    return attackers


def attack(how, http, metrics):
    os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
    while True:
        try:
            how(http, metrics)
        except OSError:
            time.sleep(0.01)


def crowd(port, asked, size, chunk=0):
    """Opens connections that send the request, and then read `chunk` bytes each in turn; opens new ones for those that end."""
    selector = selectors.DefaultSelector()
    open_ = 0
    while True:
        while open_ < size:
            stream = socket.socket()
            stream.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
            stream.settimeout(5)
            stream.connect((HOST, port))
            stream.sendall(asked)
            stream.setblocking(False)
            selector.register(stream, selectors.EVENT_READ)
            open_ += 1
        for key, _ in selector.select(timeout=0.5):
            try:
                ended = not key.fileobj.recv(chunk or 1)
            except BlockingIOError:
                continue
            except OSError:
                ended = True
            if ended:
                selector.unregister(key.fileobj)
                key.fileobj.close()
                open_ -= 1
        time.sleep(0.2)


def large_jobs(server):
    """Jobs whose page is as long as a page may be."""
    stream = connect(server.http)
    for number in range(40):
        body = json.dumps({"kind": "nobody", "id": f"large-{number}", "payload": PAYLOAD[:9_000]})
        call(stream, "POST /v1/jobs", body)


def nothing(_server):
    pass


def readers(http, _metrics):
    crowd(http, request("GET /v1/jobs?limit=1000&payloads=true"), 64)


def scrapers(_http, metrics):
    crowd(metrics, b"GET /metrics HTTP/1.1\r\n", 400)


def kinds(http, _metrics):
    stream = connect(http)
    for number in range(1_000_000):
        body = json.dumps({"kind": f"invented-{os.getpid()}-{number}", "payload": None})
        call(stream, "POST /v1/jobs", body)


def connections(http, _metrics):
    crowd(http, b"GET /v1/jobs HTTP/1.1\r\n", 400)


def waits(http, _metrics):
    crowd(http, request("GET /v1/jobs/large-1/wait?timeout=30s"), 400)


def streams(http, _metrics):
    crowd(http, request("GET /v1/events"), 400)


def followers(http, _metrics):
    """Uses the streams that one address may have, and reads them."""
    crowd(http, request("GET /v1/events"), 64, 65_536)


# By name: what is prepared before.
ATTACKS = {
    "readers of pages of 1 MiB": large_jobs,
    "silent connections to the metrics": nothing,
    "jobs of invented kinds": nothing,
    "silent connections": nothing,
    "long polls": large_jobs,
    "event streams": nothing,
    "event streams that are read": nothing,
}
HOSTILE = dict(zip(ATTACKS, [readers, scrapers, kinds, connections, waits, streams, followers]))

if __name__ == "__main__":
    sys.exit(main())
