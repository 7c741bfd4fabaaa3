"""Tests that only the control plane and administrators may write the Lease of the leader election."""

from __future__ import annotations

import pytest

from ctrlmgr.admission.leader_lease_protection import GuardedLeases
from ctrlmgr.api.resource import LEASES, Key, Resource
from ctrlmgr.engine.admission_attributes import NO_ADMISSION, Verb
from ctrlmgr.engine.request_options import Requester
from ctrlmgr.errors import Forbidden
from tests.admission.stage import Write

GUARDED = GuardedLeases(NO_ADMISSION, Key("default", "ctrlmgr"))
LEASE = {"metadata": {"name": "ctrlmgr"}}
OTHER = {"metadata": {"name": "another"}}


def judge(write: Write) -> None:
    assert list(GUARDED.admit(write.attributes)) == []
    assert list(GUARDED.validate(write.attributes)) == []


@pytest.mark.parametrize(("new", "old"), [(LEASE, None), (LEASE, LEASE), (None, LEASE)])
@pytest.mark.parametrize(
    "requester",
    [
        Requester("mallory", ("system:authenticated",)),
        Requester("system:serviceaccount:kube-system:x", ("system:serviceaccounts",)),
        Requester("system:node:a", ("system:nodes",)),
    ],
)
def test_clients_cannot_write_the_leader_election_lease(
    new: dict[str, object] | None, old: dict[str, object] | None, requester: Requester
) -> None:
    with pytest.raises(Forbidden, match="this Lease elects the leader of the control plane"):
        judge(Write("coordination.k8s.io/v1/leases", new, old, requester=requester))


@pytest.mark.parametrize(
    "requester",
    [
        Requester("system:admin", ("system:masters",)),
        Requester("system:kube-controller-manager"),
        Requester("system:apiserver"),
    ],
)
def test_the_control_plane_and_administrators_can_write_the_lease(requester: Requester) -> None:
    judge(Write("coordination.k8s.io/v1/leases", LEASE, LEASE, requester=requester))


def test_other_leases_can_be_written_by_clients() -> None:
    judge(Write("coordination.k8s.io/v1/leases", OTHER, OTHER, requester=Requester("mallory")))
    assert GUARDED.handles(LEASES, "", Verb.UPDATE)
    assert not GUARDED.handles(Resource("", "pods"), "", Verb.UPDATE)
