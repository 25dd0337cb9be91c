"""pytest plugin: kazoo's own test suite against one server of ours instead of the ensemble that its harness builds.

The harness asks for its cluster through one function; here it gets a cluster of one, whose server can be stopped,
started and wiped as the tests demand. Tests of what one plain server cannot have are deselected, each for a reason
that is written down (`expectations.toml`). Results are appended to a file of JSON lines as they come, so that a run
that is cut short still tells what it saw.
"""

import json
import pathlib
import tempfile
import tomllib

import kazoo.testing.harness
import pytest
from kazoo.testing import KazooTestHarness
from kazoo.testing.common import ZookeeperCluster

import servers
import tls

EXPECTATIONS = pathlib.Path(__file__).with_name("expectations.toml")


class Cluster:
    """What kazoo's harness takes for a ZooKeeper ensemble: one server."""

    def __init__(self, server, tls):
        self.server = server
        self.tls = tls

    def __getitem__(self, index):
        return [self.server][index]

    def __iter__(self):
        return iter([self.server])

    def start(self):
        self.server.run()

    def stop(self):
        self.server.stop()

    def terminate(self):
        """The harness's after every class: the next one gets an empty server."""
        self.server.destroy()

    def reset(self):
        self.server.reset()

    def get_logs(self):
        return self.server.get_logs()

    def get_ssl_client_configuration(self):
        return {
            "client_key": self.tls["client_key_pem"],
            "client_cert": self.tls["client_cert_pem"],
            "ca_cert": self.tls["ca_cert_pem"],
        }


def pytest_addoption(parser):
    group = parser.getgroup("bellwether")
    group.addoption("--server", choices=["zookeeper", "keeper"], default="zookeeper")
    group.addoption("--keeper-binary")
    group.addoption("--keeper-compat")
    group.addoption("--results", help="a file to append one JSON line per test to")


def pytest_configure(config):
    # A cluster of none makes the certificates and starts nothing.
    certificates = ZookeeperCluster(size=0)._ssl_configuration
    if config.getoption("--server") == "zookeeper":
        cluster = Cluster(servers.ZooKeeper(certificates), certificates)
    else:
        certificates = tls.version_3(certificates)
        binary, compat = config.getoption("--keeper-binary"), config.getoption("--keeper-compat")
        cluster = Cluster(servers.Keeper(binary, compat), certificates)
        config.pluginmanager.register(TlsForSome(cluster, lambda files: servers.Keeper(binary, compat, files)))
    kazoo.testing.harness.get_global_cluster = lambda: cluster
    config.add_cleanup(cluster.terminate)
    if results := config.getoption("--results"):
        config.pluginmanager.register(Recorder(pathlib.Path(results)))


class TlsForSome:
    """Puts a keeper that speaks TLS into the place of the plain one for the class of tests that is about TLS."""

    def __init__(self, cluster, keeper):
        self.cluster = cluster
        self.plain = cluster.server
        self.directory = tempfile.TemporaryDirectory(prefix="bellwether-compat-")
        files = tls.write_files(cluster.tls, self.directory.name)
        secure = keeper(files)
        self.secure = secure.behind(tls.PlainFront(files, secure.port).port)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self, item):
        wanted = self.secure if item.cls is not None and item.cls.__name__ == "TestSSLClient" else self.plain
        if wanted is not self.cluster.server:
            self.cluster.terminate()
            self.cluster.server = wanted

    def pytest_unconfigure(self):
        self.plain.destroy()
        self.secure.destroy()
        self.directory.cleanup()


def short(node_id):
    """`test_lock.py::KazooLockTests::test_lock`, wherever kazoo is installed."""
    return node_id.rpartition("kazoo/tests/")[2]


def pytest_collection_modifyitems(config, items):
    patterns = [entry["test"] for entry in tomllib.loads(EXPECTATIONS.read_text())["left_out"]]
    kept, out = [], []
    for item in items:
        name = short(item.nodeid)
        gone = any(name == pattern or name.startswith(pattern + "::") for pattern in patterns)
        (out if gone else kept).append(item)
    items[:] = kept
    config.hook.pytest_deselected(items=out)


class Recorder:
    """Writes down what became of each test: the worst of its three phases, and why."""

    def __init__(self, path):
        self.path = path
        self.seen = None

    def pytest_runtest_protocol(self, item):
        asks = item.cls is not None and issubclass(item.cls, KazooTestHarness)
        self.seen = {"test": short(item.nodeid), "asks_server": asks, "outcome": "passed", "seconds": 0.0, "why": ""}

    def pytest_runtest_logreport(self, report):
        self.seen["seconds"] += report.duration
        if report.failed:
            self.seen["outcome"] = "failed"
            self.seen["why"] = report.longreprtext[-4000:]
        elif report.skipped and self.seen["outcome"] == "passed":
            self.seen["outcome"] = "skipped"
            self.seen["why"] = str(report.longrepr[2]) if isinstance(report.longrepr, tuple) else report.longreprtext

    def pytest_runtest_logfinish(self):
        with self.path.open("a") as file:
            file.write(json.dumps(self.seen) + "\n")
