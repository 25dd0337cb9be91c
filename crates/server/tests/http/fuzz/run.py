#!/usr/bin/env python3
"""Runs schemathesis with the gateway's OpenAPI document, with valid and invalid requests: no answer may be a 5xx.

    cargo xtask fuzz-http [--seconds 45] [--seed N] [--binary PATH]

Needs pip with a package index. Creates a virtual environment with pinned packages below `target/`, and runs a keeper and
a node in one process (`bellwether dev`). Prints the seed first; the same seed generates the same requests. Exit code 0 if
no failure was found, 1 if one was found, 2 if the requests could not be made.

`/v1/events` is excluded, because its answer never ends: tests/http/events.rs tests it.
"""

import argparse
import os
import pathlib
import random
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[4]
TARGET = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
WORK = TARGET / "fuzz-http"
SCHEMATHESIS = WORK / "venv" / "bin" / "st"
CHECKS = "not_a_server_error"
# Time outside of the budget: reading the document, and shrinking failures.
BESIDE_SECONDS = 60
READY_SECONDS = 60


class Failed(Exception):
    """No request could be made; the message names the remedy."""


def main():
    arguments = parse()
    say(f"seed {arguments.seed}")
    make_environment()
    binary = (arguments.binary or build()).resolve()
    port = free_port()
    address = f"http://127.0.0.1:{port}"
    log = WORK / "gateway.log"
    command = [binary, "dev", "--roles", "candidate,worker,gateway", "--http-listen", f"127.0.0.1:{port}"]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("BELLWETHER_")}
    with log.open("wb") as output:
        streams = {"stdin": subprocess.DEVNULL, "stdout": output, "stderr": subprocess.STDOUT}
        gateway = subprocess.Popen(command, env=environment, **streams)
    try:
        until_ready(gateway, address, log)
        found = fuzz(address, arguments)
        if gateway.poll() is not None:
            say(f"the gateway ended; see {log}")
            return 1
        if code := health(address):
            say(f"the gateway is not ready afterwards: {code}")
            return 1
        return found
    finally:
        gateway.kill()
        gateway.wait()


def parse():
    parser = argparse.ArgumentParser(description="Makes requests from the gateway's OpenAPI document.")
    parser.add_argument("--seconds", type=int, default=45, help="time for making requests")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(2**32))
    parser.add_argument("--binary", type=pathlib.Path, help="use this binary instead of building the command")
    return parser.parse_args()


def make_environment():
    """Creates the environment once per set of pinned packages, and again if it is incomplete."""
    wanted = (HERE / "requirements.txt").read_text()
    stamp = WORK / "venv" / "requirements.txt"
    if stamp.exists() and stamp.read_text() == wanted:
        return
    say("creating a virtual environment")
    shutil.rmtree(WORK / "venv", ignore_errors=True)
    made = subprocess.run([sys.executable, "-m", "venv", WORK / "venv"], capture_output=True, text=True)
    if made.returncode != 0:
        raise Failed(f"no virtual environment (on Debian: `apt-get install python3-venv`):\n{made.stdout}{made.stderr}")
    python = WORK / "venv" / "bin" / "python"
    install = [python, "-m", "pip", "install", "--quiet", "--requirement", HERE / "requirements.txt"]
    if subprocess.run(install).returncode != 0:
        raise Failed("pip could not install the pinned packages: check the access to the package index")
    stamp.write_text(wanted)


def build():
    say("building the command")
    if subprocess.run(["cargo", "build", "--package", "bellwether", "--bin", "bellwether"], cwd=ROOT).returncode != 0:
        raise Failed("the command does not build")
    return TARGET / "debug" / "bellwether"


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def health(address):
    """Returns None if the gateway is ready, otherwise the reason."""
    try:
        with urllib.request.urlopen(f"{address}/readyz", timeout=10) as answer:
            return None if answer.status == 200 else str(answer.status)
    except (urllib.error.URLError, OSError) as error:
        return str(error)


def until_ready(gateway, address, log):
    deadline = time.monotonic() + READY_SECONDS
    while why := health(address):
        if gateway.poll() is not None or time.monotonic() > deadline:
            raise Failed(f"the gateway does not serve ({why}); see {log}")
        time.sleep(0.2)


def fuzz(address, arguments):
    command = [SCHEMATHESIS, "run", f"{address}/openapi.json", "--checks", CHECKS, "--seed", str(arguments.seed)]
    command += ["--max-time", str(arguments.seconds), "--phases", "examples,coverage,fuzzing"]
    command += ["--exclude-path", "/v1/events", "--request-timeout", "60", "--continue-on-failure", "--warnings", "off"]
    try:
        ended = subprocess.run(command, cwd=WORK, timeout=arguments.seconds + BESIDE_SECONDS)
    except subprocess.TimeoutExpired:
        say(f"schemathesis did not end within {arguments.seconds + BESIDE_SECONDS} s")
        return 1
    if ended.returncode not in (0, 1):
        raise Failed(f"schemathesis ended with {ended.returncode}")
    say("no failure found" if ended.returncode == 0 else f"repeat with: cargo xtask fuzz-http --seed {arguments.seed}")
    return ended.returncode


def say(line):
    print(f"fuzz-http: {line}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Failed as failure:
        say(str(failure))
        sys.exit(2)
