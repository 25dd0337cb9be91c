"""A pytest plugin that runs kazoo's test suite against a single server instead of an ensemble.

The harness gets its cluster from one function; here it gets a cluster of one server, which can be stopped, started and
wiped. Tests that a single server cannot support are deselected, each with a recorded reason (`expectations.toml`).
Results are appended to a file of JSON lines as they arrive, so that an interrupted run keeps them.
"""

import json
import pathlib
import tempfile
import tomllib

import kazoo.testing.harness
import pytest
from kazoo.testing import KazooTestHarness
from kazoo.testing.common import ZookeeperCluster

import report
import servers
import tls

EXPECTATIONS = pathlib.Path(__file__).with_name("expectations.toml")


class Cluster:
    """A ZooKeeper ensemble for kazoo's harness, with one server."""

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
        """Called by the harness after every class, so that the next one starts with an empty server."""
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
    # A cluster of size 0 creates the certificates and starts no server.
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
    """Replaces the plain keeper by one with TLS for the test class about TLS."""

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
    """`test_lock.py::KazooLockTests::test_lock`, independent of the path of kazoo."""
    return node_id.rpartition("kazoo/tests/")[2]


def pytest_collection_modifyitems(config, items):
    patterns = [entry["test"] for entry in tomllib.loads(EXPECTATIONS.read_text())["left_out"]]
    kept, out = [], []
    for item in items:
        name = short(item.nodeid)
        gone = any(report.covers(pattern, name) for pattern in patterns)
        (out if gone else kept).append(item)
    items[:] = kept
    config.hook.pytest_deselected(items=out)


class Recorder:
    """Records the outcome of each test, which is the worst of its three phases, and the reason."""

    def __init__(self, path):
        self.path = path
        self.seen = None

    def pytest_deselected(self, items):
        for item in items:
            self.write({"test": short(item.nodeid), "outcome": "left out"})

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
        self.write(self.seen)

    def write(self, line):
        with self.path.open("a") as file:
            file.write(json.dumps(line) + "\n")
