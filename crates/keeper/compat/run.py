#!/usr/bin/env python3
"""Compares the keeper with ZooKeeper through two unmodified clients: kazoo's test suite and zkCli.

    cargo xtask compat [--write] [--servers zookeeper,keeper,keeper-3.8.0]

Needs Debian's package `zookeeper`, and pip with a package index. Creates a virtual environment with pinned packages
below `target/`, and runs kazoo's suite on all servers concurrently, because the tests mostly wait. Failed tests are
retried while nothing else runs, so that a busy machine does not cause differences. The exit code is 0 only if the
keeper behaves as ZooKeeper, or every difference has a recorded reason in `expectations.toml`. Without `zookeeper` among
the servers (in CI), every test must pass, and zkCli is not compared.
"""

import argparse
import fcntl
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time
import tomllib
import unittest

# Keeps the source tree clean.
sys.dont_write_bytecode = True

import report
import servers
import zkcli

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[2]
TARGET = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
WORK = TARGET / "compat"
PYTHON = WORK / "venv" / "bin" / "python"
DOCUMENT = ROOT / "docs" / "keeper-compatibility.md"
COMMAND = "cargo xtask compat --write"
# One run takes 1 to 3 minutes alone on two cores; three concurrent runs on a busy machine took twice that.
SUITE_SECONDS = 900
# The slowest test takes 10 s.
TEST_SECONDS = 90
# More failures are not caused by a busy machine.
SECOND_TRIES = 20
# The `--compat` of the keeper: none, or 3.8.0 for the behaviour of that release.
COMPAT = {"keeper": None, "keeper-3.8.0": "3.8.0"}


class Failed(Exception):
    """The comparison could not be run; the message says how to fix it."""


def main():
    arguments = parse()
    check_itself()
    names = arguments.servers.split(",")
    if unknown := set(names) - {"zookeeper", *COMPAT}:
        raise Failed(f"unknown server: {', '.join(sorted(unknown))}")
    check_tools("zookeeper" in names)
    make_environment()
    binary = (arguments.keeper_binary or build_keeper()).resolve()
    if not os.access(binary, os.X_OK):
        raise Failed(f"no keeper at {binary}")
    expectations = tomllib.loads((HERE / "expectations.toml").read_text())

    runs = compare(names, binary, with_zkcli="zookeeper" in names)
    for run in runs:
        say(f"{run.name} {run.version}: {report.counts(run)} passed / failed / skipped")
    if "zookeeper" not in names:
        return verdict([line for run in runs for line in report.failures(run)])

    real, *others = sorted(runs, key=lambda run: run.name != "zookeeper")
    document = report.document([real, *others], expectations, versions([real, *others]), COMMAND)
    (WORK / "report.md").write_text(document)
    if arguments.write:
        DOCUMENT.write_text(document)
    say(f"the report is in {DOCUMENT if arguments.write else WORK / 'report.md'}")
    return verdict([line for ours in others for line in report.regressions(real, ours, expectations)])


def parse():
    parser = argparse.ArgumentParser(description="Compares the keeper with a real ZooKeeper.")
    parser.add_argument("--servers", default=",".join(["zookeeper", *COMPAT]))
    parser.add_argument("--keeper-binary", type=pathlib.Path, help="default: build the example")
    parser.add_argument("--write", action="store_true", help="write docs/keeper-compatibility.md")
    return parser.parse_args()


def check_itself():
    tests = unittest.defaultTestLoader.loadTestsFromName("test_compat")
    if not unittest.TextTestRunner(verbosity=0).run(tests).wasSuccessful():
        raise Failed("the tests of the comparison fail")


def check_tools(with_zookeeper):
    for tool, package in [("setpriv", "util-linux"), ("cargo", "Rust"), ("java", "zookeeper")]:
        if (tool != "java" or with_zookeeper) and not shutil.which(tool):
            raise Failed(f"no `{tool}` in PATH: install {package}")
    for file in [servers.JAR, zkcli.ZKCLI] if with_zookeeper else []:
        if not file.exists():
            raise Failed(f"no {file}: on Debian or Ubuntu run `apt-get install zookeeper` as root")


def make_environment():
    """Created once per set of pinned packages; an incomplete one is replaced.

    CI fetches ZooKeeper 3.9.3 beside this program, and both need it: the second one waits for the first.
    """
    WORK.mkdir(parents=True, exist_ok=True)
    with (WORK / "venv.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        fill_environment()


def fill_environment():
    wanted = (HERE / "requirements.txt").read_text()
    stamp = WORK / "venv" / "requirements.txt"
    if stamp.exists() and stamp.read_text() == wanted:
        return
    say("creating a virtual environment")
    shutil.rmtree(WORK / "venv", ignore_errors=True)
    made = subprocess.run([sys.executable, "-m", "venv", WORK / "venv"], capture_output=True, text=True)
    if made.returncode != 0:
        raise Failed(f"no virtual environment (Debian: `apt-get install python3-venv`):\n{made.stdout}{made.stderr}")
    install = [PYTHON, "-m", "pip", "install", "--quiet", "--requirement", HERE / "requirements.txt"]
    if subprocess.run(install).returncode != 0:
        raise Failed("pip could not install the pinned packages: check the access to a package index")
    stamp.write_text(wanted)


def build_keeper():
    say("building the keeper")
    build = ["cargo", "build", "--package", "bellwether-keeper", "--features", "tls", "--example", "keeper"]
    if subprocess.run(build, cwd=ROOT).returncode != 0:
        raise Failed("the build of the keeper failed")
    return TARGET / "debug" / "examples" / "keeper"


def compare(names, binary, with_zkcli):
    """A run on each server: kazoo's suites concurrently, then the retries and zkCli sequentially."""
    started = time.monotonic()
    suites = {name: start_suite(name, binary, "first", []) for name in names}
    firsts = {name: finish_suite(suite) for name, suite in suites.items()}
    say(f"kazoo's suite took {time.monotonic() - started:.0f} s")
    runs = []
    for name in names:
        out = [test for test, result in firsts[name].items() if result["outcome"] == "left out"]
        tests = {test: result | {"tries": 1} for test, result in firsts[name].items() if test not in out}
        bad = [test for test, result in tests.items() if report.is_bad(result)]
        if 0 < len(bad) <= SECOND_TRIES:
            say(f"{name}: {len(bad)} tests failed and are retried; see {WORK / f'{name}-first.log'}")
            again = finish_suite(start_suite(name, binary, "second", bad))
            tests |= {test: result | {"tries": 2} for test, result in again.items()}
        runs.append(report.Run(*zkcli_run(name, binary, with_zkcli), tests, out))
    return runs


def zkcli_run(name, binary, with_zkcli):
    """The name and version of the server, and the outputs of zkCli."""
    server = server_of(name, binary)
    try:
        server.run()
        return server.name, server.version(), zkcli.transcript(server) if with_zkcli else []
    finally:
        server.destroy()


def start_suite(name, binary, which, tests):
    """Starts kazoo's suite, or some of its tests, in a separate process that writes its results as JSON lines."""
    results, log = WORK / f"{name}-{which}.jsonl", WORK / f"{name}-{which}.log"
    results.unlink(missing_ok=True)
    # It is terminated with this process, and its server with it.
    command = ["setpriv", "--pdeathsig", "TERM", PYTHON, "-m", "pytest"]
    command += ["-p", "kazoo_plugin", "-p", "no:cacheprovider", "--quiet", f"--rootdir={WORK}"]
    command += ["--timeout", str(TEST_SECONDS), "--results", results, "--pyargs"]
    command += [f"kazoo.tests.{test.replace('.py', '', 1)}" for test in tests] or ["kazoo.tests"]
    if name == "zookeeper":
        command += ["--server", "zookeeper"]
    else:
        command += ["--server", "keeper", "--keeper-binary", binary]
        command += ["--keeper-compat", COMPAT[name]] if COMPAT[name] else []
    # With `CI`, kazoo's suite also compares the server's version with `ZOOKEEPER_VERSION`.
    environment = os.environ | {"PYTHONPATH": str(HERE), "CI": "1", "ZOOKEEPER_VERSION": version_of(name, binary)}
    environment["PYTHONDONTWRITEBYTECODE"] = "1"
    with log.open("wb") as output:
        streams = {"stdin": subprocess.DEVNULL, "stdout": output, "stderr": subprocess.STDOUT}
        process = subprocess.Popen(command, env=environment, cwd=WORK, **streams)
    return process, results, log, time.monotonic() + SUITE_SECONDS


def server_of(name, binary):
    return servers.ZooKeeper() if name == "zookeeper" else servers.Keeper(binary, COMPAT[name])


def version_of(name, binary):
    """The version selected by `--compat`, or the one that the server reports."""
    if COMPAT.get(name):
        return COMPAT[name]
    server = server_of(name, binary)
    try:
        server.run()
        return server.version()
    finally:
        server.destroy()


def finish_suite(suite):
    process, results, log, deadline = suite
    try:
        process.wait(max(0, deadline - time.monotonic()))
    except subprocess.TimeoutExpired:
        process.terminate()
        process.wait()
        say(f"kazoo's suite did not end within {SUITE_SECONDS} s; see {log}")
    if not results.exists():
        raise Failed(f"kazoo's suite did not start; see {log}")
    lines = [json.loads(line) for line in results.read_text().splitlines()]
    return {line.pop("test"): line for line in lines}


def versions(runs):
    freeze = (HERE / "requirements.txt").read_text()
    pinned = {name: re.search(rf"^{name}(?:\[\w+\])?==(.*)$", freeze, re.M)[1] for name in ("kazoo", "pytest")}
    java = subprocess.run(["java", "-version"], capture_output=True, text=True).stderr.splitlines()[0]
    return [
        *((run.name, run.version) for run in runs),
        *pinned.items(),
        ("Python", sys.version.split()[0]),
        ("Java", java.split('"')[1]),
    ]


def verdict(bad):
    for line in bad:
        say(line)
    say("the keeper behaves as ZooKeeper" if not bad else f"{len(bad)} differences without a recorded reason")
    return 1 if bad else 0


def say(line):
    print(f"compat: {line}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (Failed, servers.ServerFailed, zkcli.ZkCliFailed) as failure:
        say(str(failure))
        sys.exit(2)
