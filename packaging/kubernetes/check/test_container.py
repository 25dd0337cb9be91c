"""Each difference between the container file and what runs it is found: the tests damage the real files."""

import unittest

import container

DOCKERFILE, COMPOSE, PACKAGE = "packaging/Dockerfile", "dashboards/compose.yaml", "crates/server/Cargo.toml"
NODE, WORKER = "packaging/kubernetes/base/node.yaml", "packaging/kubernetes/components/worker/worker.yaml"


class Container(unittest.TestCase):
    def test_the_files_agree(self):
        self.assertEqual(list(container.findings(container.files())), [])

    def test_each_difference_is_found(self):
        debian = "docker.io/library/debian:bookworm-slim"
        for finding, path, text, damaged in [
            ("does not build bellwether", DOCKERFILE, "--bin bellwether", "--bin bellwether-chaos"),
            ("does not build bellwether", DOCKERFILE, "--locked ", ""),
            ("does not build node", PACKAGE, '[[bin]]\nname = "bellwether"', '[[bin]]\nname = "node"'),
            ("does not copy bellwether alone", DOCKERFILE, "release/bellwether /usr", "release/ /usr"),
            ("does not run bellwether", DOCKERFILE, '["bellwether"]', '["sh", "-c", "bellwether"]'),
            ("sets no user", DOCKERFILE, "USER 10001:10001\n", ""),
            ("bellwether-node does not run as the user", DOCKERFILE, "10001:10001", "10002:10002"),
            ("bellwether-node does not run as the user", NODE, "runAsGroup: 10001", "runAsGroup: 0"),
            ("bellwether-worker does not run as the user", WORKER, "runAsUser: 10001", "runAsUser: 1000"),
            ("does not run the entry point", NODE, "args: [node", "command: [node"),
            ("builds without zookeeper-tls", DOCKERFILE, "--locked", "--locked --no-default-features"),
            ("builds without zookeeper-tls", PACKAGE, 'default = ["zookeeper-tls"]', "default = []"),
            ("no build argument with a tag", DOCKERFILE, "FROM ${DEBIAN_IMAGE}", f"FROM {debian}"),
            ("no build argument with a tag", DOCKERFILE, f"ARG DEBIAN_IMAGE={debian}", "ARG DEBIAN_IMAGE=debian"),
            ("DEBIAN_IMAGE of node-1 is not that", DOCKERFILE, f"ARG DEBIAN_IMAGE={debian}", "ARG DEBIAN_IMAGE=a.b/c:1"),
            ("does not pass the images", COMPOSE, "        DEBIAN_IMAGE: ${DEBIAN_IMAGE:-" + debian + "}\n", ""),
            ("of grafana has no variable", COMPOSE, "${GRAFANA_IMAGE:-", "${GRAFANA:-"),
        ]:
            with self.subTest(finding=finding, path=path):
                texts = container.files()
                self.assertEqual(texts[path].count(text), 1, f"{text!r} in {path}")
                texts[path] = texts[path].replace(text, damaged)
                found = list(container.findings(texts))
                self.assertTrue(any(finding in each for each in found), f"{finding!r} is not in {found}")

    def test_an_image_may_be_named_by_its_digest(self):
        texts, tagged = container.files(), "docker.io/library/debian:bookworm-slim"
        for path, start, end in ((DOCKERFILE, "ARG DEBIAN_IMAGE=", "\n"), (COMPOSE, "${DEBIAN_IMAGE:-", "}")):
            pinned = f"{start}{tagged}@sha256:{'0' * 64}{end}"
            texts[path] = texts[path].replace(f"{start}{tagged}{end}", pinned)
            self.assertIn(pinned, texts[path])
        self.assertEqual(list(container.findings(texts)), [])


if __name__ == "__main__":
    unittest.main()
