"""Fixtures with servers and clients for end-to-end tests: one server for all tests, and a namespace for each test."""

from __future__ import annotations

import itertools
import random
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from ctrlmgr.clock import SystemClock
from ctrlmgr.eventlog import migrate_log
from ctrlmgr.testing.postgres import PostgresCluster
from tests.e2e.kubectl import Kubectl, find_kubectl
from tests.e2e.serving import DUAL_STACK, Server

_numbers = itertools.count(1)

PLAYED = (
    "cronjob-controller",
    "daemonset-controller",
    "deployment-controller",
    "disruption-controller",
    "horizontal-pod-autoscaler-controller",
    "job-controller",
    "pod-garbage-collector-controller",
    "replicaset-controller",
    "replicationcontroller-controller",
    "statefulset-controller",
)
"""The controllers that the shared server does not run, because tests write the statuses of workloads themselves, and no
kubelets run.
"""

_EDITOR = """
import pathlib, sys
old, new, path = sys.argv[1:]
file = pathlib.Path(path)
file.write_text(file.read_text().replace(old, new))
"""


@pytest.fixture(scope="session", params=["sqlite"])
def database(request: pytest.FixtureRequest) -> Iterator[str]:
    """The URL of an empty database; a test can choose a database on `postgres` with `indirect` parametrisation."""
    if request.param == "sqlite":
        yield f"sqlite:///{request.getfixturevalue('tmp_path_factory').mktemp('database') / 'ctrlmgr.db'}"
        return
    cluster: PostgresCluster = request.getfixturevalue("cluster")
    with cluster.database(f"e2e_{next(_numbers)}") as url:
        migrate_log(url, clock=SystemClock(), random=random.Random(1))
        yield url


@pytest.fixture(scope="session")
def server(database: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A running server that all tests share; it must log no errors, and must shut down gracefully."""
    folder = tmp_path_factory.mktemp("server")
    flags = ("--database", database, *DUAL_STACK, "--controllers", ",".join(("*", *(f"-{each}" for each in PLAYED))))
    server = Server(
        folder, *flags, CTRLMGR_CONTROLLERS_NAMESPACE_DELETION_GRACE="0"
    )  # Kubernetes' five seconds are of no use in tests
    with server.running():
        yield server


@pytest.fixture
def namespace(server: Server) -> str:
    """The name of a newly created namespace."""
    return server.new_namespace()


@pytest.fixture(scope="session")
def anywhere(server: Server, tmp_path_factory: pytest.TempPathFactory) -> Kubectl:
    """A function that runs kubectl commands for cluster-scoped objects."""
    return Kubectl(find_kubectl(), server.kubeconfig, tmp_path_factory.mktemp("home"))


@pytest.fixture
def kubectl(anywhere: Kubectl, namespace: str) -> Kubectl:
    """A function that runs kubectl commands in a namespace that only the test uses."""
    return anywhere.within(namespace)


@pytest.fixture
def editor(tmp_path: Path) -> str:
    """The path of a program for KUBE_EDITOR that replaces `one` with `two` in the edited file."""
    script = tmp_path / "editor.py"
    script.write_text(_EDITOR)
    return f"{sys.executable} {script} one two"
