"""What is wrong with a set of Kubernetes objects: the schemas of Kubernetes, and Bellwether's own rules.

    rules.py [--part] NAME < objects.yaml

`--part`: the objects are a part of an overlay, so what they refer to may be elsewhere.
"""

import pathlib
import re
import sys

import kubernetes_validate
import yaml

# The oldest and the newest version that the manifests are checked for.
VERSIONS = ["1.29", "1.37"]
# The drain, then the requests to ZooKeeper and the end of the process.
NOBODY = 65534
AFTER_DRAIN_SECONDS = 15
ROOT = pathlib.Path(__file__).resolve().parents[3]
PROBES = ["startupProbe", "livenessProbe", "readinessProbe"]
# There is no schema of this kind in the wheel: these are the keys and types in KEDA's reference.
SCALED_OBJECT = {
    "scaleTargetRef": dict,
    "minReplicaCount": int,
    "maxReplicaCount": int,
    "pollingInterval": int,
    "cooldownPeriod": int,
    "fallback": dict,
    "triggers": list,
}
PROMETHEUS = {"serverAddress", "query", "threshold", "activationThreshold", "ignoreNullValues"}


def findings(objects, part=False):
    """Returns a sentence for each mistake in these objects."""
    found = []
    for thing in objects:
        name = f"{thing.get('kind')} {thing.get('metadata', {}).get('name')}"
        found += [f"{name}: {finding}" for finding in (*schema(thing), *rules(thing, objects, part))]
    return found


def schema(thing):
    if thing.get("apiVersion") == "keda.sh/v1alpha1":
        yield from scaled_object(thing.get("spec", {}))
        return
    for version in VERSIONS:
        try:
            kubernetes_validate.validate(thing, version, strict=True)
        except kubernetes_validate.ValidationError as error:
            path = ".".join(str(step) for step in error.path)
            yield f"Kubernetes {version} refuses {path or 'it'}: {error.message}"
        except kubernetes_validate.SchemaNotFoundError:
            yield f"Kubernetes {version} does not know {thing.get('apiVersion')} {thing.get('kind')}"


def scaled_object(spec):
    for key, value in spec.items():
        if key not in SCALED_OBJECT:
            yield f"a ScaledObject has no {key}"
        elif not isinstance(value, SCALED_OBJECT[key]):
            yield f"{key} is not of the type {SCALED_OBJECT[key].__name__}"
    for trigger in spec.get("triggers", []):
        for key, value in trigger.get("metadata", {}).items():
            if key not in PROMETHEUS:
                yield f"a Prometheus trigger has no {key}"
            elif not isinstance(value, str):
                yield f"{key} of a trigger is not a string"
        query = trigger.get("metadata", {}).get("query", "")
        if not re.findall(r"bellwether_\w+", query):
            yield "the query names no metric of Bellwether"
        yield from unknown_metrics(query)


def unknown_metrics(query):
    known = (ROOT / "docs" / "metrics.md").read_text()
    for metric in re.findall(r"bellwether_\w+", query):
        if f"`{metric}`" not in known:
            yield f"there is no metric {metric}"


def rules(thing, objects, part):
    kind, spec = thing.get("kind"), thing.get("spec", {})
    if kind == "Secret":
        yield "a Secret must not be in a repository"
    if kind == "Deployment":
        yield from pod(spec.get("template", {}).get("spec", {}), objects, part)
        yield from selects(spec.get("selector", {}).get("matchLabels"), [thing])
    if kind == "Service":
        yield from selects(spec.get("selector"), objects)
        yield from ports(spec, objects)
    if kind == "PodDisruptionBudget":
        yield from [] if part else selects(spec.get("selector", {}).get("matchLabels"), objects)
    if kind in ("ScaledObject", "HorizontalPodAutoscaler") and not part:
        target = spec.get("scaleTargetRef", {}).get("name")
        if not [each for each in of_kind(objects, "Deployment") if each["metadata"]["name"] == target]:
            yield f"there is no Deployment {target} to scale"
    if kind == "ConfigMap":
        yield from unknown_variables(thing.get("data", {}))


def of_kind(objects, kind):
    return [each for each in objects if each.get("kind") == kind]


def selects(labels, objects):
    def has(deployment):
        template = deployment.get("spec", {}).get("template", {}).get("metadata", {}).get("labels", {})
        return labels and labels.items() <= template.items()

    if len([each for each in of_kind(objects, "Deployment") if has(each)]) != 1:
        yield f"{labels} does not select the pods of exactly one Deployment"


def ports(spec, objects):
    containers = [each for deployment in of_kind(objects, "Deployment") for each in containers_of(deployment)]
    names = {port.get("name") for each in containers for port in each.get("ports", [])}
    for port in spec.get("ports", []):
        if port.get("targetPort") not in names:
            yield f"no container has the port {port.get('targetPort')}"


def containers_of(deployment):
    return deployment.get("spec", {}).get("template", {}).get("spec", {}).get("containers", [])


def pod(spec, objects, part):
    grace, drain = spec.get("terminationGracePeriodSeconds", 30), drain_seconds(objects)
    pause = sum(pre_stop_seconds(each) for each in spec.get("containers", []))
    if grace < drain + AFTER_DRAIN_SECONDS + pause:
        yield f"{grace} s are too short for a drain of {drain} s, {pause} s before it and {AFTER_DRAIN_SECONDS} s after it"
    security = spec.get("securityContext", {})
    if not security.get("runAsNonRoot") or not security.get("runAsUser"):
        yield "the pod may run as root"
    if security.get("runAsUser") == NOBODY:
        yield "the pod runs as nobody, which other processes of the machine may be"
    if security.get("seccompProfile", {}).get("type") != "RuntimeDefault":
        yield "the pod has no seccomp profile"
    if spec.get("automountServiceAccountToken") is not False:
        yield "the pod has a token for Kubernetes' API"
    if spec.get("enableServiceLinks") is not False:
        yield "variables of Services may be mistaken for settings"
    volumes = {volume.get("name") for volume in spec.get("volumes", [])}
    for container in spec.get("containers", []):
        yield from of_container(container, volumes)
    maps = {each["metadata"]["name"] for each in of_kind(objects, "ConfigMap")}
    for container in spec.get("containers", []):
        for source in container.get("envFrom", []):
            name = source.get("configMapRef", {}).get("name")
            if not part and name not in maps:
                yield f"there is no ConfigMap {name}"


def of_container(container, volumes):
    security = container.get("securityContext", {})
    if security.get("allowPrivilegeEscalation") is not False or security.get("capabilities") != {"drop": ["ALL"]}:
        yield "the container has privileges"
    if not security.get("readOnlyRootFilesystem"):
        yield "the root file system can be written"
    if not {"cpu", "memory"} <= container.get("resources", {}).get("requests", {}).keys():
        yield "the container requests no CPU or memory"
    names = {port.get("name") for port in container.get("ports", [])}
    for probe in PROBES:
        if probe not in container:
            yield f"there is no {probe}"
        elif container[probe].get("httpGet", {}).get("port") not in names:
            yield f"{probe} asks a port that the container does not have"
    for source in [*container.get("env", []), *container.get("envFrom", [])]:
        if "secretRef" in source or "secretKeyRef" in source.get("valueFrom", {}):
            yield "a secret is a variable: other processes can read it, so mount it as a file"
    yield from unknown_variables({each["name"]: each.get("value") for each in container.get("env", [])})
    for mount in container.get("volumeMounts", []):
        if mount.get("name") not in volumes:
            yield f"there is no volume {mount.get('name')}"


def unknown_variables(data):
    # Every variable has a line of its own in this file, which a test compares with the options of the command.
    lines = (ROOT / "packaging" / "bellwether.toml").read_text().splitlines()
    known = {line.removeprefix("# ") for line in lines}
    for name in data:
        if name not in known:
            yield f"no option reads {name}"
        if name == "BELLWETHER_ZOOKEEPER_PASSWORD":
            yield "the password must be a file"


def drain_seconds(objects):
    """The drain grace of the nodes, 30 s unless a ConfigMap sets it."""
    graces = [each.get("data", {}).get("BELLWETHER_DRAIN_GRACE") for each in of_kind(objects, "ConfigMap")]
    return max((seconds(grace) for grace in graces if grace), default=30)


def seconds(duration):
    units = {"ms": 0.001, "s": 1, "m": 60, "h": 3600}
    parts = re.findall(r"(\d+)(ms|s|m|h)", duration)
    return sum(int(count) * units[unit] for count, unit in parts)


def pre_stop_seconds(container):
    command = container.get("lifecycle", {}).get("preStop", {}).get("exec", {}).get("command", [])
    return int(command[1]) if command[:1] == ["sleep"] else 0


def main(arguments):
    part = "--part" in arguments
    name = arguments[-1]
    objects = [thing for thing in yaml.safe_load_all(sys.stdin) if thing]
    if not objects:
        print(f"kubernetes: {name} has no objects", file=sys.stderr)
        return 1
    found = findings(objects, part)
    for finding in found:
        print(f"kubernetes: {name}: {finding}", file=sys.stderr)
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
