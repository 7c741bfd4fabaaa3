"""Tests that several servers never allocate an address or a port twice; `allocation.load` is the longer form."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from ctrlmgr.api.resource import SERVICES
from ctrlmgr.kinds.allocators.service_ranges import IP_ADDRESSES, NODE_PORTS
from ctrlmgr.testing.postgres import PostgresCluster
from tests.controllers.repair.cluster import RepairCluster
from tests.robustness.allocation.load import Plan, allocate
from tests.robustness.allocation.truth import ADDRESSES, PORTS, Ledger, ReturnedService
from tests.robustness.faults import new_seed
from tests.robustness.histories.run import RunSetup
from tests.robustness.places import on_postgres, on_sqlite


def assert_sound(setting: RunSetup) -> None:
    plan = Plan(new_seed(), callers=4, kills=2, between=0.7)
    print(f"seed {plan.seed}: python -m tests.robustness.allocation.load --seed {plan.seed}")  # noqa: T201  # to be run again
    outcome = allocate(plan, setting)
    assert outcome.wrong == []
    assert outcome.ledger.claimed[ADDRESSES] >= 253
    assert outcome.ledger.claimed[PORTS] >= 200


@pytest.mark.slow
def test_two_servers_on_one_file_allocate_uniquely(tmp_path: Path) -> None:
    assert_sound(on_sqlite(tmp_path)._replace(servers=2))


@pytest.mark.slow
@pytest.mark.postgres
def test_two_servers_on_one_postgresql_allocate_uniquely(tmp_path: Path, cluster: PostgresCluster) -> None:
    with on_postgres(tmp_path, cluster, servers=2) as setting:
        assert_sound(setting)


# Tests that `assert_sound` detects errors.


def ledger(cluster: RepairCluster) -> Ledger:
    return Ledger().read(cluster.log.scan())


@pytest.fixture
def cluster_of_two() -> RepairCluster:
    cluster = RepairCluster()
    ports = [{"port": 80, "nodePort": 30005}]
    cluster.service("one", clusterIP="10.96.0.5", type="NodePort", ports=ports)
    cluster.service("two", "b", clusterIP="10.96.0.6")
    return cluster


def test_correct_histories_are_accepted(cluster_of_two: RepairCluster) -> None:
    cluster_of_two.send("DELETE", "/api/v1/namespaces/b/services/two")
    found = ledger(cluster_of_two)
    assert found.wrong == []
    assert found.used == set(found.claims) == {(ADDRESSES, "10.96.0.5"), (PORTS, "30005")}


def _give_the_address_of_another(cluster: RepairCluster) -> None:
    cluster.tamper(cluster.get(SERVICES, "two", "b"), lambda fields: fields["spec"].update(clusterIPs=["10.96.0.5"]))


def _lose_a_claim(cluster: RepairCluster) -> None:
    cluster.remove(cluster.get(NODE_PORTS, "30005"))


def _hand_on_a_claim(cluster: RepairCluster) -> None:
    claim = cluster.get(IP_ADDRESSES, "10.96.0.6")
    cluster.tamper(claim, lambda fields: fields["spec"]["parentRef"].update(name="three"))


def _leave_a_claim(cluster: RepairCluster) -> None:
    cluster.remove(cluster.get(SERVICES, "two", "b"))


@pytest.mark.parametrize(
    ("harm", "complaint"),
    [
        (_give_the_address_of_another, "10.96.0.5 is held by [('a', 'one'), ('b', 'two')]"),
        (_lose_a_claim, "30005 is claimed by None, held by [('a', 'one')]"),
        (_hand_on_a_claim, "10.96.0.6 is claimed by ('b', 'three'), held by [('b', 'two')]"),
        (_leave_a_claim, "10.96.0.6 is claimed by ('b', 'two'), held by []"),
    ],
)
def test_wrong_histories_are_rejected(
    harm: Callable[[RepairCluster], None], complaint: str, cluster_of_two: RepairCluster
) -> None:
    harm(cluster_of_two)
    assert any(complaint in each for each in ledger(cluster_of_two).wrong)


def test_a_repair_is_not_mistaken_for_an_allocation(cluster_of_two: RepairCluster) -> None:
    cluster_of_two.remove(cluster_of_two.get(NODE_PORTS, "30005"))
    cluster_of_two.repair_ports()
    found = ledger(cluster_of_two)
    assert found.used == set(found.claims)
    assert sum("no Service with it" in each for each in found.wrong) == 2


def test_acknowledged_writes_must_be_in_the_log(cluster_of_two: RepairCluster) -> None:
    found = ledger(cluster_of_two)
    revision = cluster_of_two.get(SERVICES, "two", "b").revision
    right = ReturnedService(revision, "two", frozenset({(ADDRESSES, "10.96.0.6")}))
    wrong = ReturnedService(revision, "two", frozenset({(ADDRESSES, "10.96.0.7")}))
    assert list(found.compare([right])) == []
    assert len(list(found.compare([right, wrong, right._replace(revision=1)]))) == 2
