"""What is wrong with the container file, compared with the package that it builds, the manifests and the demo that run it."""

import json
import pathlib
import re

import yaml

ROOT = pathlib.Path(__file__).resolve().parents[3]
# An image with a tag that a digest can replace, `${DEBIAN_IMAGE}`.
VARIABLE = re.compile(r"\$\{(\w+_IMAGE)(?::-([^}]+))?\}")
TAGGED = re.compile(r"[\w.-]+(?:/[\w.-]+)+:[\w.-]+(?:@sha256:[0-9a-f]{64})?")


def files():
    """Returns the texts that are compared, by their paths."""
    names = ["packaging/Dockerfile", "dashboards/compose.yaml", "crates/server/Cargo.toml", ".dockerignore"]
    manifests = sorted((ROOT / "packaging" / "kubernetes").glob("**/*.yaml"))
    return {str(path.relative_to(ROOT)): path.read_text() for path in [*(ROOT / name for name in names), *manifests]}


def findings(texts):
    """Returns a sentence for each difference."""
    steps = instructions(texts["packaging/Dockerfile"])
    package = texts["crates/server/Cargo.toml"]
    objects = [
        thing
        for path, text in texts.items()
        if path.startswith("packaging/kubernetes/")
        for thing in yaml.safe_load_all(text)
        if thing
    ]
    yield from binary(steps, package)
    yield from user(steps, objects)
    yield from features(steps, package, objects)
    yield from images(steps, yaml.safe_load(texts["dashboards/compose.yaml"]))


def instructions(text):
    """Returns the instructions of a Dockerfile with their arguments."""
    text = re.sub(r"^\s*#.*\n", "", text, flags=re.MULTILINE).replace("\\\n", " ")
    return [tuple(line.split(maxsplit=1)) for line in text.splitlines() if line.strip()]


def arguments(steps, name):
    return [argument for instruction, argument in steps if instruction == name]


def binary(steps, package):
    (built,) = re.findall(r'\[\[bin\]\]\nname = "([\w-]+)"', package)
    (run,) = arguments(steps, "RUN")
    words = run.split()
    if words[-2:] != ["--bin", built] or not {"--release", "--locked"} <= set(words):
        yield f"the container file does not build {built} with --release and --locked"
    copies = [copy.split() for copy in arguments(steps, "COPY") if copy.startswith("--from=build")]
    if [copy[1] for copy in copies] != [f"/source/target/release/{built}"]:
        yield f"the container file does not copy {built} alone"
    if [json.loads(entry) for entry in arguments(steps, "ENTRYPOINT")] != [[built]]:
        yield f"the container does not run {built}"


def user(steps, objects):
    users = arguments(steps, "USER")
    if len(users) != 1 or steps.index(("USER", users[0])) < max(
        at for at, (instruction, _) in enumerate(steps) if instruction == "FROM"
    ):
        yield "the last stage of the container file sets no user"
        return
    for deployment in (each for each in objects if each.get("kind") == "Deployment"):
        context = deployment["spec"]["template"]["spec"]["securityContext"]
        if users[0] != f"{context.get('runAsUser')}:{context.get('runAsGroup')}":
            yield f"{deployment['metadata']['name']} does not run as the user of the container file, {users[0]}"
        for container in deployment["spec"]["template"]["spec"]["containers"]:
            if "command" in container:
                yield f"{deployment['metadata']['name']} does not run the entry point of the container file"


def features(steps, package, objects):
    (default,) = re.findall(r"^default = \[(.*)\]$", package, re.MULTILINE)
    (run,) = arguments(steps, "RUN")
    built = "" if "--no-default-features" in run else default
    built += " ".join(re.findall(r"--features[= ](\S+)", run))
    settings = json.dumps(objects)
    for variable, feature in (("ZOOKEEPER_TLS", "zookeeper-tls"), ("BELLWETHER_OTEL", "otel")):
        if variable in settings and feature not in built:
            yield f"the manifests set {variable}, and the container file builds without {feature}"


def images(steps, compose):
    """Each image from a registry is a variable, so that a build or a demo can name a digest."""
    defaults = dict(argument.split("=", 1) for argument in arguments(steps, "ARG"))
    for image in arguments(steps, "FROM"):
        variable = VARIABLE.fullmatch(image.split()[0])
        if variable is None or not TAGGED.fullmatch(defaults.get(variable[1], "")):
            yield f"the image {image} of the container file has no build argument with a tag"
    for name, service in compose["services"].items():
        for argument, value in service.get("build", {}).get("args", {}).items():
            variable = VARIABLE.fullmatch(value)
            if variable is None or variable[1] != argument or variable[2] != defaults.get(argument):
                yield f"{argument} of {name} is not that of the container file"
        if "build" in service and service["build"].get("args", {}).keys() != defaults.keys():
            yield f"{name} does not pass the images of the container file"
        if service["image"] == "bellwether:local":
            continue
        variable = VARIABLE.fullmatch(service["image"])
        if variable is None or not TAGGED.fullmatch(variable[2] or ""):
            yield f"the image {service['image']} of {name} has no variable with a tag"
