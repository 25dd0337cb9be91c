#!/usr/bin/env python3
"""Fetches the jars of ZooKeeper 3.9.3 into a directory, unless they are there: `newer.py DIRECTORY`.

Needs pip with a package index. The download takes half a minute and 1 GB of disk for that time.
"""

import os
import pathlib
import shutil
import subprocess
import sys
import tarfile
import tempfile

# Keeps the source tree clean.
sys.dont_write_bytecode = True

import run

# Ten times as long as usual. A slow package index must not block CI.
DOWNLOAD_SECONDS = 300
# ZooKeeper, its metrics and snapshots, and a backend for logging, without which a failed start could not be diagnosed.
JARS = [
    "zookeeper-3.9.3.jar",
    "zookeeper-jute-3.9.3.jar",
    "metrics-core-4.2.30.jar",
    "snappy-java-1.1.10.7.jar",
    "slf4j-api-2.0.16.jar",
    "log4j-slf4j2-impl-2.24.3.jar",
    "log4j-api-2.24.3.jar",
    "log4j-core-2.24.3.jar",
]


def main():
    if len(sys.argv) != 2:
        raise run.Failed("usage: newer.py DIRECTORY")
    directory = pathlib.Path(sys.argv[1])
    if not directory.is_dir():
        fetch(directory)


def fetch(directory):
    """The directory appears only when it is complete."""
    run.make_environment()
    run.say("fetching the jars of ZooKeeper 3.9.3")
    with tempfile.TemporaryDirectory(dir=run.WORK) as place:
        place = pathlib.Path(place)
        archive = download(place)
        jars = place / "jars"
        jars.mkdir()
        extract(archive, jars)
        jars.rename(directory)


def download(place):
    command = [run.PYTHON, "-m", "pip", "download", "--quiet", "--no-deps", "--requirement", run.HERE / "newer.txt"]
    # pip unpacks the archive in a temporary directory, which can be a small one in memory.
    environment = os.environ | {"TMPDIR": str(place)}
    try:
        pip = subprocess.run([*command, "--dest", place], env=environment, timeout=DOWNLOAD_SECONDS)
    except subprocess.TimeoutExpired as late:
        raise run.Failed(f"the download did not end within {DOWNLOAD_SECONDS} s") from late
    if pip.returncode != 0:
        raise run.Failed("pip could not download ZooKeeper 3.9.3: check the access to a package index")
    return next(place.glob("pyspark-*.tar.gz"))


def extract(archive, directory):
    """Reads the archive once and stops after the last jar."""
    missing = set(JARS)
    with tarfile.open(archive, "r|gz") as members:
        for member in members:
            name = pathlib.PurePosixPath(member.name)
            if name.parent.name == "jars" and name.name in missing and member.isfile():
                with (directory / name.name).open("wb") as jar:
                    shutil.copyfileobj(members.extractfile(member), jar)
                missing.remove(name.name)
            if not missing:
                return
    raise run.Failed(f"not in {archive.name}: {', '.join(sorted(missing))}")


if __name__ == "__main__":
    try:
        main()
    except run.Failed as failure:
        run.say(str(failure))
        sys.exit(2)
