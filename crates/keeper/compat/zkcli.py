"""Runs the same `zkCli.sh` sessions on two servers and compares their outputs.

zkCli reads commands from stdin and prints nothing at the end of a command, so each command is followed by one with a
known output (`version`). A separate thread prints watch events between any two lines: they are removed from the stream,
waited for where the script requires it, and appended to the output of the command that caused them.

Values that differ between two runs on one server are masked: session ids, times, the port. Zxids are not masked: both
servers are new, and the same writes must have the same numbers.
"""

import os
import pathlib
import queue
import re
import subprocess
import threading
import time

SCRIPT = pathlib.Path(__file__).with_name("zkcli.txt")
ZKCLI = pathlib.Path("/usr/share/zookeeper/bin/zkCli.sh")
# A command takes milliseconds; the first one waits for a JVM and a connection.
COMMAND_SECONDS = 30
# The second one is its output for every command after the server has rejected the connection.
SENTINELS = ("ZooKeeper CLI version:", "Not connected")
EVENT = re.compile(r"WatchedEvent state:\S+ type:\S+ path:\S*")
MASKS = [
    (re.compile(r"127\.0\.0\.1:\d+"), "127.0.0.1:PORT"),
    (re.compile(r"(ctime|mtime) = .*"), r"\1 = TIME"),
    (re.compile(r"(ephemeralOwner) = 0x(?!ff)[0-9a-f]{8,}"), r"\1 = SESSION"),
]


class ZkCliFailed(Exception):
    """zkCli ended or stopped responding; the message contains its last output."""


class ZkCli:
    """A zkCli process with its session."""

    def __init__(self, address):
        environment = os.environ | {"CLIENT_JVMFLAGS": "-Dfile.encoding=UTF-8", "TZ": "UTC"}
        self.process = subprocess.Popen(
            ["setpriv", "--pdeathsig", "KILL", str(ZKCLI), "-server", address],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env=environment,
        )
        self.lines = queue.Queue()
        threading.Thread(target=self.read, daemon=True).start()
        # Its greeting and the event of the connection.
        self.tell("", events=1)

    def read(self):
        for line in self.process.stdout:
            self.lines.put(line.rstrip("\n"))
        self.lines.put(None)

    def tell(self, command, events=0):
        """Executes a command; returns its output, followed by the events."""
        self.process.stdin.write(f"{command}\nversion\n")
        self.process.stdin.flush()
        printed, seen, done = [], [], False
        deadline = time.monotonic() + COMMAND_SECONDS
        while not done or len(seen) < events:
            try:
                line = self.lines.get(timeout=max(0, deadline - time.monotonic()))
            except queue.Empty:
                raise ZkCliFailed(f"`{command}`: no end after {COMMAND_SECONDS} s; {seen}; {printed}") from None
            if line is None:
                raise ZkCliFailed(f"`{command}`: zkCli ended after {printed}")
            if event := EVENT.search(line):
                seen.append(event[0])
            elif line.startswith(SENTINELS):
                done = True
            elif line and line != "WATCHER::" and not line.startswith("SLF4J"):
                printed.append(line)
        masked = [mask(line) for line in printed]
        # Identities are in hash order.
        return (sorted(masked) if command == "whoami" else masked) + seen

    def quit(self):
        self.process.stdin.write("quit\n")
        self.process.stdin.close()
        try:
            self.process.wait(COMMAND_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise ZkCliFailed("`quit`: zkCli did not end") from None


def mask(line):
    """The line with the values masked that differ between runs."""
    for pattern, instead in MASKS:
        line = pattern.sub(instead, line)
    if line.startswith("[") and line.endswith("]"):
        # Names are in hash order.
        line = "[" + ", ".join(sorted(line[1:-1].split(", "))) + "]"
    return line


def commands(script):
    """The script as (session, command, events); a restart is a separate command."""
    session, steps = "", []
    for line in script.splitlines():
        if not line or line.startswith("#"):
            continue
        if line.startswith("!session "):
            session = line.removeprefix("!session ")
        elif line.startswith("!events "):
            steps[-1] = (*steps[-1][:2], int(line.removeprefix("!events ")))
        else:
            steps.append((session, line, 0))
    return steps


def transcript(server):
    """Runs the script on the server; returns (session, command, output) for each step."""
    answers, session, client = [], None, None
    try:
        for name, command, events in commands(SCRIPT.read_text()):
            if client is not None and (name != session or command == "!restart"):
                client.quit()
                client = None
            if command == "!restart":
                server.stop()
                server.run()
                continue
            if client is None:
                client, session = ZkCli(server.address), name
            answers.append((name, command, client.tell(command, events)))
        client.quit()
    finally:
        if client is not None:
            client.process.kill()
    return answers


def differences(real, ours):
    """The steps with different outputs: (session, command, on ZooKeeper, on the keeper)."""
    return [
        (session, command, expected, answer)
        for (session, command, expected), (_, _, answer) in zip(real, ours, strict=True)
        if expected != answer
    ]
