#!/usr/bin/env python3
"""Checks the overflow codec on S3's protocol: starts the server of moto, creates a bucket, and runs `tests/s3.rs`.

    crates/overflow/s3/run.py [ARGUMENT OF cargo test…]

Needs pip with a package index. Creates a virtual environment below `target/s3`, and builds in the target directory of the main
workspace, with which it shares most crates. With AWS_ENDPOINT, AWS_BUCKET and the credentials of a store in the environment, it uses
that store: the tests write and remove objects below `run`, `changed` and `swept`, which must be empty.
"""

import os
import pathlib
import subprocess
import sys
import time
import urllib.request

HERE = pathlib.Path(__file__).resolve().parent
TARGET = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", HERE.parents[2] / "target"))
VENV = TARGET / "s3" / "venv"
START_SECONDS = 60


def main():
    environment = dict(os.environ, CARGO_TARGET_DIR=str(TARGET))
    if "AWS_ENDPOINT" in environment:
        return test(environment)
    pip = [VENV / "bin" / "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([sys.executable, "-m", "venv", VENV], check=True)
    subprocess.run([*pip, "--requirement", HERE / "requirements.txt"], check=True)
    log = VENV.parent / "moto.log"
    with log.open("w") as output:
        command = [VENV / "bin" / "moto_server", "--port", "0"]
        moto = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT)
    try:
        endpoint = address(moto, log)
        request = urllib.request.Request(f"{endpoint}/jobs", method="PUT")
        urllib.request.urlopen(request).close()
        keys = {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test", "AWS_REGION": "us-east-1"}
        return test(environment | keys | {"AWS_ENDPOINT": endpoint, "AWS_BUCKET": "jobs"})
    finally:
        moto.terminate()
        moto.wait()


def address(moto, log):
    """Waits until the server prints its address."""
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline and moto.poll() is None:
        for line in log.read_text().splitlines():
            if "Running on http://" in line:
                return line.rpartition("Running on ")[2].strip()
        time.sleep(0.1)
    sys.exit(f"moto_server did not start: see {log}")


def test(environment):
    return subprocess.run(["cargo", "test", *sys.argv[1:]], cwd=HERE, env=environment).returncode


if __name__ == "__main__":
    sys.exit(main())
