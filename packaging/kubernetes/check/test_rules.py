"""Each mistake in a manifest is found: the tests damage the real manifests."""

import copy
import pathlib
import unittest

import yaml

import rules

MANIFESTS = pathlib.Path(__file__).resolve().parent.parent


def base():
    """The base as kustomize would render it, except for the labels that it adds."""
    objects = [thing for name in ("node", "gateway", "disruption") for thing in load("base", name)]
    data = {"BELLWETHER_DRAIN_GRACE": "30s"}
    return [*objects, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "bellwether"}, "data": data}]


def load(folder, name):
    return list(yaml.safe_load_all((MANIFESTS / folder / f"{name}.yaml").read_text()))


def get(objects, kind, name):
    return next(each for each in objects if each["kind"] == kind and each["metadata"]["name"] == name)


def pod_of(objects, name):
    return get(objects, "Deployment", name)["spec"]["template"]["spec"]


class Rules(unittest.TestCase):
    def finds(self, finding, objects, part=False):
        found = rules.findings(objects, part)
        self.assertTrue(any(finding in each for each in found), f"{finding!r} is not in {found}")

    def damaged(self, finding, damage, name="bellwether-node"):
        objects = base()
        damage(pod_of(objects, name), pod_of(objects, name)["containers"][0])
        self.finds(finding, objects)

    def test_the_base_has_no_mistake(self):
        self.assertEqual(rules.findings(base()), [])

    def test_a_misspelt_key_is_refused_by_the_schema(self):
        self.damaged("Kubernetes 1.29 refuses", lambda pod, _: pod.update(terminationGracePeriod=60))

    def test_a_value_of_another_type_is_refused_by_the_schema(self):
        self.damaged("Kubernetes 1.37 refuses", lambda _, main: main["livenessProbe"].update(periodSeconds="often"))

    def test_an_unknown_kind_of_object_is_found(self):
        self.finds("does not know policy/v1beta1", [{**load("base", "disruption")[0], "apiVersion": "policy/v1beta1"}])

    def test_a_drain_is_shorter_than_the_time_until_the_kill(self):
        self.damaged("44 s are too short for a drain of 30 s", lambda pod, _: pod.update(terminationGracePeriodSeconds=44))
        objects = base()
        get(objects, "ConfigMap", "bellwether")["data"]["BELLWETHER_DRAIN_GRACE"] = "1m30s"
        self.finds("60 s are too short for a drain of 90 s", objects)

    def test_the_pause_before_the_drain_counts(self):
        damage = lambda pod, _: pod.update(terminationGracePeriodSeconds=49)
        self.damaged("49 s are too short", damage, "bellwether-gateway")

    def test_each_probe_is_needed_and_asks_an_open_port(self):
        for probe in rules.PROBES:
            self.damaged(f"there is no {probe}", lambda _, main: main.pop(probe))
            self.damaged(f"{probe} asks a port", lambda _, main: main[probe]["httpGet"].update(port="http"))

    def test_a_pod_has_no_privileges(self):
        self.damaged("may run as root", lambda pod, _: pod["securityContext"].pop("runAsUser"))
        self.damaged("runs as nobody", lambda pod, _: pod["securityContext"].update(runAsUser=65534))
        self.damaged("no seccomp profile", lambda pod, _: pod["securityContext"].pop("seccompProfile"))
        self.damaged("has privileges", lambda _, main: main["securityContext"].pop("capabilities"))
        self.damaged("can be written", lambda _, main: main["securityContext"].update(readOnlyRootFilesystem=False))
        self.damaged("a token for Kubernetes' API", lambda pod, _: pod.pop("automountServiceAccountToken"))
        self.damaged("variables of Services", lambda pod, _: pod.pop("enableServiceLinks"))

    def test_a_pod_requests_resources(self):
        self.damaged("requests no CPU or memory", lambda _, main: main["resources"].pop("requests"))

    def test_a_secret_is_a_file(self):
        key = {"name": "BELLWETHER_HTTP_TOKENS", "valueFrom": {"secretKeyRef": {"name": "a", "key": "b"}}}
        self.damaged("a secret is a variable", lambda _, main: main["env"].append(key))
        self.damaged("a secret is a variable", lambda _, main: main["envFrom"].append({"secretRef": {"name": "a"}}))
        password = {"name": "BELLWETHER_ZOOKEEPER_PASSWORD", "value": "secret"}
        self.damaged("the password must be a file", lambda _, main: main["env"].append(password))
        self.finds("must not be in a repository", [{"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}}])

    def test_a_misspelt_setting_is_found(self):
        objects = base()
        get(objects, "ConfigMap", "bellwether")["data"]["BELLWETHER_ZOOKEEPERS"] = "zk:2281"
        self.finds("no option reads BELLWETHER_ZOOKEEPERS", objects)
        self.damaged("no option reads A", lambda _, main: main["env"].append({"name": "A", "value": "b"}))

    def test_names_refer_to_something(self):
        self.damaged("there is no volume", lambda pod, _: pod.pop("volumes"))
        self.damaged("there is no ConfigMap", lambda _, main: main["envFrom"][0]["configMapRef"].update(name="other"))
        for kind in ("Service", "PodDisruptionBudget"):
            objects = base()
            next(each for each in objects if each["kind"] == kind)["spec"]["selector"] = {"matchLabels": {"a": "b"}}
            self.finds("does not select", objects)
        objects = base()
        get(objects, "Service", "bellwether")["spec"]["ports"][0]["targetPort"] = "http"
        self.finds("no container has the port http", objects)

    def test_an_autoscaler_has_a_target(self):
        for folder, name in (("components/keda", "scaledobject"), ("components/hpa", "hpa")):
            scaler, worker = load(folder, name), load("components/worker", "worker")
            self.assertEqual(rules.findings([*scaler, *worker, base()[-1]]), [])
            self.finds("there is no Deployment bellwether-worker to scale", scaler)

    def test_a_scaled_object_is_checked_for_keys_types_and_metrics(self):
        (right,) = load("components/keda", "scaledobject")
        self.assertEqual(rules.findings([right], part=True), [])
        for finding, damage in [
            ("has no minReplicas", lambda spec, _: spec.update(minReplicas=1)),
            ("maxReplicaCount is not of the type int", lambda spec, _: spec.update(maxReplicaCount="20")),
            ("has no treshold", lambda _, trigger: trigger.update(treshold="8")),
            ("threshold of a trigger is not a string", lambda _, trigger: trigger.update(threshold=8)),
            ("no metric bellwether_queue_length", lambda _, trigger: trigger.update(query="bellwether_queue_length")),
            ("names no metric", lambda _, trigger: trigger.update(query="up")),
        ]:
            wrong = copy.deepcopy(right)
            damage(wrong["spec"], wrong["spec"]["triggers"][0]["metadata"])
            self.finds(finding, [wrong], part=True)


if __name__ == "__main__":
    unittest.main()
