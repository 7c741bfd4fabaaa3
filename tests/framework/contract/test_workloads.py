"""Tests of `ctrlmgr run` with workloads: the results are the same with our server directly and through a proxy that
injects delays.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ctrlmgr.testing.served import ServerProcess
from tests.framework.contract.proxy import Proxy, ResponseOrder
from tests.framework.contract.running import APPS, FLAGS, RUNS, Workloads, access_to, running


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    with ServerProcess(tmp_path_factory.mktemp("server"), "--database", "memory:", *FLAGS) as running:
        yield running


@pytest.fixture(scope="module", params=["ours", "event first", "answer first"])
def cluster(server: ServerProcess, request: pytest.FixtureRequest) -> Iterator[Workloads]:
    if request.param == "ours":
        with running(access_to(server), RUNS):
            yield Workloads(server)
        return
    order = ResponseOrder.EVENT_FIRST if request.param == "event first" else ResponseOrder.ANSWER_FIRST
    with Proxy(server, order, streams_lists=False) as proxy, running(access_to(server, proxy.url), RUNS):
        yield Workloads(server)


def test_a_deployment_is_created_scaled_rolled_and_deleted(cluster: Workloads) -> None:
    cluster.make("Deployment", replicas=3)
    cluster.deployment_is(3)
    cluster.change("deployments", {"replicas": 5})
    cluster.deployment_is(5)
    cluster.roll("deployments", "nginx:2")
    cluster.deployment_is(5)
    assert cluster.images() == {"nginx:2"}
    cluster.change("deployments", {"replicas": 1})
    cluster.deployment_is(1)
    cluster.remove("deployments")
    cluster.is_empty()


def test_a_stateful_set_is_updated_rolled_back_orphaned_and_adopted(cluster: Workloads) -> None:
    cluster.make("StatefulSet", serviceName="web", replicas=2)
    cluster.stateful_set_is(2)
    cluster.roll("statefulsets", "nginx:2")
    cluster.stateful_set_is(2)
    cluster.roll("statefulsets", "nginx:1")  # the first ControllerRevision again, with a new number
    cluster.stateful_set_is(2)
    assert cluster.images() == {"nginx:1"}
    assert sorted(each["revision"] for each in cluster.found(f"{APPS}controllerrevisions")) == [2, 3]

    cluster.remove("statefulsets", propagationPolicy="Orphan")
    revisions = {each["metadata"]["uid"] for each in cluster.found(f"{APPS}controllerrevisions")}
    cluster.make("StatefulSet", serviceName="web", replicas=2)
    cluster.stateful_set_is(2)
    adopted = cluster.found(f"{APPS}controllerrevisions")
    assert {each["metadata"]["uid"] for each in adopted} == revisions
    assert all(each["metadata"]["ownerReferences"] for each in adopted)
    cluster.remove("statefulsets")
    cluster.is_empty()


def test_a_daemon_set_is_updated_and_rolled_back(cluster: Workloads) -> None:
    cluster.make("DaemonSet")
    cluster.daemon_set_is(2)
    for image in ("nginx:2", "nginx:1"):
        cluster.roll("daemonsets", image)
        cluster.eventually(lambda image=image: cluster.images() == {image})  # type: ignore[misc]  # binds it
        cluster.daemon_set_is(2)
    cluster.remove("daemonsets")
    cluster.is_empty()
