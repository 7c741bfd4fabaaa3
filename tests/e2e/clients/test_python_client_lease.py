"""Tests of the official Python client's leader election with each lock type."""

# The client's own functions are not annotated.
# mypy: disable-error-code="no-untyped-call"

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from kubernetes import client
from kubernetes.leaderelection import leaderelection
from kubernetes.leaderelection.electionconfig import Config
from kubernetes.leaderelection.resourcelock.configmaplock import ConfigMapLock
from kubernetes.leaderelection.resourcelock.leaselock import LeaseLock

from tests.background import background
from tests.e2e.clients import python_client as make
from tests.e2e.serving import DEADLINE, Server


class LeaderResigned(Exception):
    """The error that the leader raises to resign; a leader that raises an error does not renew the lease."""


class Candidate:
    """A leader that leads until the test makes it resign."""

    def __init__(self, lock: ConfigMapLock | LeaseLock) -> None:
        self.leads, self.resigns = threading.Event(), threading.Event()
        self._election = leaderelection.LeaderElection(
            Config(
                lock,
                lease_duration=2,
                renew_deadline=1.5,
                retry_period=1,
                onstarted_leading=self._lead,
                onstopped_leading=None,
            )
        )
        self.done = background(self._election.run)

    def _lead(self) -> None:
        self.leads.set()
        self.resigns.wait()
        raise LeaderResigned


@pytest.fixture
def api(server: Server) -> Iterator[client.ApiClient]:
    with make.connected(server) as api:
        yield api


def config_map_lock(api: client.ApiClient, namespace: str, identity: str) -> ConfigMapLock:
    lock = ConfigMapLock("leader", namespace, identity)
    lock.api_instance = client.CoreV1Api(api)
    return lock


def lease_lock(api: client.ApiClient, namespace: str, identity: str) -> LeaseLock:
    lock = LeaseLock("leader", namespace, identity)
    lock.api_instance = client.CoordinationV1Api(api)
    return lock


def config_map_holder(api: client.ApiClient, namespace: str) -> str:
    core: make.Api = client.CoreV1Api(api)
    annotations = core.read_namespaced_config_map("leader", namespace).metadata.annotations
    return str(json.loads(annotations["control-plane.alpha.kubernetes.io/leader"])["holderIdentity"])


def lease_holder(api: client.ApiClient, namespace: str) -> str:
    coordination: make.Api = client.CoordinationV1Api(api)
    return str(coordination.read_namespaced_lease("leader", namespace).spec.holder_identity)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("lock", "holder"), [(config_map_lock, config_map_holder), (lease_lock, lease_holder)], ids=["configmap", "lease"]
)
def test_the_second_client_leads_after_the_first_releases_the_lease(
    lock: Callable[..., Any], holder: Callable[..., str], api: client.ApiClient, namespace: str
) -> None:
    first = Candidate(lock(api, namespace, "first"))
    assert first.leads.wait(DEADLINE)
    second = Candidate(lock(api, namespace, "second"))
    assert holder(api, namespace) == "first"
    assert not second.leads.is_set()
    first.resigns.set()
    assert second.leads.wait(DEADLINE)
    assert holder(api, namespace) == "second"
    second.resigns.set()
    for candidate in (first, second):
        candidate.done.result(DEADLINE)
