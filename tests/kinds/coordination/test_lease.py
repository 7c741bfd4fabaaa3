from typing import Any

import pytest

from ctrlmgr.kinds.coordination.lease import LeaseStrategy
from tests.kinds.write import create, update

STRATEGY = LeaseStrategy()
LEASE: dict[str, Any] = {"metadata": {"name": "one", "namespace": "ns"}, "spec": {"holderIdentity": "me"}}


@pytest.mark.parametrize(
    ("spec", "messages"),
    [
        ({"leaseDurationSeconds": 15, "leaseTransitions": 0}, []),
        ({"leaseDurationSeconds": 0}, ["spec.leaseDurationSeconds: Invalid value: 0: must be greater than 0"]),
        ({"leaseTransitions": -1}, ["spec.leaseTransitions: Invalid value: -1: must be greater than or equal to 0"]),
    ],
)
def test_counts(spec: dict[str, Any], messages: list[str]) -> None:
    assert create(STRATEGY, {**LEASE, "spec": spec}).messages == messages
    assert update(STRATEGY, LEASE, {"spec": spec}).messages == messages


def test_a_lease_can_have_any_finalizer() -> None:
    """Tests the case crud-leases-026 of the conformance corpus."""
    assert create(STRATEGY, {"metadata": {**LEASE["metadata"], "finalizers": ["nodomain"]}}).errors == []


def test_a_lease_is_created_by_a_put_but_not_overwritten_without_a_version() -> None:
    assert STRATEGY.allow_create_on_update
    assert not STRATEGY.allow_unconditional_update
