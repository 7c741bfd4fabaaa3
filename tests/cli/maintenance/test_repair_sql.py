"""Tests of all corruptions that repairs detect, and of the repairs; SQL statements corrupt SQLite and PostgreSQL
databases.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from sqlalchemy import create_engine, text
from sqlalchemy.pool import NullPool

from ctrlmgr.api.resource import SERVICES, Resource
from ctrlmgr.eventlog import EventLog, open_log
from ctrlmgr.kinds.allocators.allocation_claims import Claim
from ctrlmgr.kinds.allocators.service_ranges import IP_ADDRESSES, NODE_PORTS
from ctrlmgr.testing import FakeClock
from tests.cli.conftest import Run
from tests.controllers.repair.cluster import RepairCluster, rounds

FULL = ["--service-cluster-ip-range", "10.96.0.0/29", "--service-node-port-range", "30000-30003"]
"""Address and port ranges that are completely allocated."""


class Database:
    """A log whose database tests change directly, without the control plane."""

    def __init__(self, url: str) -> None:
        self.url = url

    def execute(self, statement: str, **parameters: str) -> None:
        """Run a SQL statement that must change exactly one row."""
        engine = create_engine(self.url, poolclass=NullPool)
        with engine.begin() as connection:
            assert connection.execute(text(statement), parameters).rowcount == 1

    def lose(self, resource: Resource, name: str) -> None:
        """Remove an object from the database without an event."""
        place = {"resource": str(resource), "name": name}
        self.execute("UPDATE object SET deleted = (1 = 1) WHERE resource = :resource AND name = :name", **place)
        self.execute(f"UPDATE event SET type = 3 WHERE {_CURRENT}", **place)

    def rewrite(self, resource: Resource, name: str, old: str, new: str) -> None:
        """Replace a string in the stored body of an object."""
        statement = f"UPDATE event SET body = replace(body, :old, :new) WHERE {_CURRENT}"
        self.execute(statement, old=old, new=new, resource=str(resource), name=name)

    def open(self) -> EventLog:
        return open_log(self.url, clock=FakeClock(), random=random.Random(2), migrate=True)

    def claims(self) -> dict[str, str]:
        """Return the owner of each allocated address and port, as recorded in the log."""
        with closing(self.open()) as log:
            found = [each for resource in (IP_ADDRESSES, NODE_PORTS) for each in log.snapshot(resource).objects]
            return {each.name: parent.name for each in found if (parent := each.view(Claim).parent)}


_CURRENT = "revision = (SELECT head_revision FROM object WHERE resource = :resource AND name = :name)"


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Database:
    """Six Services `s1` … `s6` at 10.96.0.1 … 10.96.0.6, four of them with the node ports 30000 … 30003."""
    sqlite = request.param == "sqlite"
    found = Database(f"sqlite:///{tmp_path / 'log.db'}" if sqlite else request.getfixturevalue("postgres_url"))
    with closing(found.open()) as log:
        cluster = RepairCluster(log=log)
        for number in range(1, 7):
            spec: dict[str, Any] = {"clusterIP": f"10.96.0.{number}"}
            if number <= 4:
                spec |= {"type": "NodePort", "ports": [{"port": 80, "nodePort": 29999 + number}]}
            cluster.service(f"s{number}", **spec)
    return found


class Case(NamedTuple):
    """A corruption of the database, and the expected finding: reason, value, outcome."""

    name: str
    harm: list[tuple[Any, ...]]
    """The parameters of a corruption: the removed object (resource and name), or the changed object with a string and
    the string's replacement.
    """
    found: list[tuple[str, str, str]]
    ranges: Sequence[str] = ()


def _address(number: int, to: str) -> tuple[Any, ...]:
    return SERVICES, f"s{number}", f"10.96.0.{number}", to


def _port(number: int, to: int) -> tuple[Any, ...]:
    return SERVICES, f"s{number}", str(29999 + number), str(to)


CASES = [
    Case("nothing", [], []),
    Case("nothing, in a full range", [], [], FULL),
    Case(
        "an address without a claim",
        [(IP_ADDRESSES, "10.96.0.1")],
        [("ClusterIPNotAllocated", "10.96.0.1", "repaired")],
    ),
    Case(
        "an address claimed by another",
        [(IP_ADDRESSES, "10.96.0.1", '"name":"s1"', '"name":"gone"')],
        [("ClusterIPNotAllocated", "10.96.0.1", "repaired")],
    ),
    Case(
        "a claim with other labels",
        [(IP_ADDRESSES, "10.96.0.1", '"ipaddress.kubernetes.io/ip-family":"IPv4"', '"a":"b"')],
        [("IPAddressWrongLabels", "10.96.0.1", "repaired")],
    ),
    Case(
        "no address at all",
        [_address(6, "10.96.0.600")],
        [("IPAddressWrongReference", "10.96.0.6", "released"), ("ClusterIPNotValid", "10.96.0.600", "reported")],
    ),
    Case(
        "an address out of range",
        [_address(6, "10.97.0.6")],
        [("IPAddressWrongReference", "10.96.0.6", "released"), ("ClusterIPOutOfRange", "10.97.0.6", "reported")],
    ),
    Case(
        "an address of two Services",
        [_address(6, "10.96.0.5")],
        [("IPAddressWrongReference", "10.96.0.6", "released"), ("ClusterIPAlreadyAllocated", "10.96.0.5", "reported")],
    ),
    Case("a claim nobody uses", [(SERVICES, "s6")], [("IPAddressNotAllocated", "10.96.0.6", "released")]),
    Case("a port without a claim", [(NODE_PORTS, "30000")], [("PortNotAllocated", "30000", "repaired")]),
    Case(
        "a port claimed by another",
        [(NODE_PORTS, "30000", '"name":"s1"', '"name":"gone"')],
        [("PortNotAllocated", "30000", "repaired")],
    ),
    Case(
        "a port of two Services",
        [_port(4, 30000)],
        [("PortLeaked", "30003", "released"), ("PortAlreadyAllocated", "30000", "reported")],
    ),
    Case(
        "a port out of range",
        [_port(4, 31000)],
        [("PortLeaked", "30003", "released"), ("PortOutOfRange", "31000", "reported")],
        ["--service-node-port-range", "30000-30004"],
    ),
    Case(
        "an address of two Services in a full range",
        [_address(6, "10.96.0.5")],
        [
            ("IPAddressWrongReference", "10.96.0.6", "released"),
            ("ClusterIPAlreadyAllocated", "10.96.0.5", "reported"),
            ("ServiceCIDRFull", "10.96.0.5", "reported"),
        ],
        FULL,
    ),
    Case(
        "a port of two Services in a full range",
        [_port(4, 30000)],
        [
            ("PortLeaked", "30003", "released"),
            ("PortAlreadyAllocated", "30000", "reported"),
            ("PortRangeFull", "30000", "reported"),
        ],
        FULL,
    ),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_findings_of_each_command_are_repaired_or_reported(run: Run, database: Database, case: Case) -> None:
    for harm in case.harm:
        (database.lose if len(harm) == 2 else database.rewrite)(*harm)
    finished = run("repair", "--database", database.url, *case.ranges)
    lines = [line.split()[:5] for line in finished.out.splitlines()[1:]]
    assert [(reason, value, outcome) for reason, _, _, value, outcome in lines] == case.found


def test_a_leaked_allocation_survives_two_rounds(database: Database) -> None:
    database.lose(SERVICES, "s4")
    with closing(database.open()) as log:
        cluster = RepairCluster(log=log)
        assert rounds(cluster.repair_addresses, 4) == [
            [("IPAddressNotAllocated", "10.96.0.4", "flagged")],
            [("IPAddressNotAllocated", "10.96.0.4", "flagged")],
            [("IPAddressNotAllocated", "10.96.0.4", "released")],
            [],
        ]
        assert [each[-1:] for each in rounds(cluster.repair_ports, 4)] == [
            [("PortLeaked", "30003", "flagged")],
            [("PortLeaked", "30003", "flagged")],
            [("PortLeaked", "30003", "released")],
            [],
        ]
    assert set(database.claims()) == {f"10.96.0.{number}" for number in (1, 2, 3, 5, 6)} | {"30000", "30001", "30002"}
