"""Tests of the filter that refuses writes until StorageVersions are published: refused writes and exempt requests."""

from __future__ import annotations

import pytest

from ctrlmgr.api.resource import LEASES, NAMESPACES, Resource
from ctrlmgr.authentication.user import API_SERVER, User
from ctrlmgr.authorization.attributes import Attributes
from ctrlmgr.errors import ServiceUnavailable
from ctrlmgr.server.filters.storage_version_barrier import StorageVersionBarrier

ANN = User("ann")
DEPLOYMENTS = Resource("apps", "deployments")
VERSIONS = Resource("internal.apiserver.k8s.io", "storageversions")


def asks(verb: str, resource: Resource = DEPLOYMENTS, namespace: str = "default") -> Attributes:
    return Attributes(verb, "", resource.group, "v1", resource.plural, namespace=namespace)


@pytest.fixture
def barrier() -> StorageVersionBarrier:
    return StorageVersionBarrier([DEPLOYMENTS, LEASES, NAMESPACES, VERSIONS])


@pytest.mark.parametrize("verb", ["create", "update", "patch", "delete", "deletecollection"])
def test_a_write_is_refused_until_the_version_is_published(barrier: StorageVersionBarrier, verb: str) -> None:
    words = "wait for storage version registration to complete for resource: deployments.apps, last seen error: "
    with pytest.raises(ServiceUnavailable) as refused:
        barrier.check(ANN, asks(verb))
    assert str(refused.value) == f"{words}<nil>"
    barrier.failed([DEPLOYMENTS], "no space")
    with pytest.raises(ServiceUnavailable) as refused:
        barrier.check(ANN, asks(verb))
    assert str(refused.value) == f"{words}no space"
    barrier.published([DEPLOYMENTS])
    barrier.failed([DEPLOYMENTS], "later")
    barrier.check(ANN, asks(verb))
    assert not barrier.is_complete


@pytest.mark.parametrize(
    ("user", "attributes"),
    [
        *((ANN, asks(verb)) for verb in ("get", "list", "watch")),
        (ANN, Attributes("post", "/apis/apps", is_resource=False)),
        (ANN, asks("create", VERSIONS, "")),
        (ANN, asks("update", LEASES, "kube-system")),
        (API_SERVER, asks("create", NAMESPACES, "")),
        (ANN, asks("create", Resource("authorization.k8s.io", "subjectaccessreviews"), "")),
    ],
)
def test_requests_that_pass(barrier: StorageVersionBarrier, user: User, attributes: Attributes) -> None:
    barrier.check(user, attributes)
    assert not barrier.is_complete


@pytest.mark.parametrize(
    ("user", "attributes"),
    [
        (ANN, asks("create", NAMESPACES, "")),
        (API_SERVER, asks("delete", NAMESPACES, "")),
        (ANN, asks("update", LEASES, "default")),
    ],
)
def test_requests_that_are_refused(barrier: StorageVersionBarrier, user: User, attributes: Attributes) -> None:
    with pytest.raises(ServiceUnavailable):
        barrier.check(user, attributes)


def test_a_barrier_without_resources_is_complete(barrier: StorageVersionBarrier) -> None:
    barrier.published([DEPLOYMENTS, LEASES, NAMESPACES, VERSIONS])
    assert barrier.is_complete
