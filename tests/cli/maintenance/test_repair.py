"""Tests of `ctrlmgr repair` after SQL statements have changed the database."""

from __future__ import annotations

import json
import random
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from ctrlmgr.api.resource import EVENTS, SERVICES, Resource
from ctrlmgr.eventlog import open_log
from ctrlmgr.kinds.allocators.allocation_claims import Claim
from ctrlmgr.kinds.allocators.service_ranges import IP_ADDRESSES, NODE_PORTS
from ctrlmgr.testing import FakeClock
from tests.cli.conftest import Run
from tests.engine.stage import Stage

_CURRENT = "revision = (SELECT head_revision FROM object WHERE resource = :resource AND name = :name)"


@pytest.fixture
def network(tmp_path: Path) -> str:
    """Return the URL of a log with three Services: `one` and `two` have addresses, and `three` also has a node port."""
    url = f"sqlite:///{tmp_path / 'log.db'}"
    log = open_log(url, clock=FakeClock(), random=random.Random(1), migrate=True)
    stage = Stage(log=log)
    stage.namespace("ns")
    for name, address in (("one", "10.96.0.11"), ("two", "10.96.0.12")):
        create(stage, name, clusterIP=address)
    create(stage, "three", clusterIP="10.96.0.13", type="NodePort", ports=[{"port": 80, "nodePort": 30003}])
    log.close()
    return url


def create(stage: Stage, name: str, **spec: Any) -> None:
    body = {
        "kind": "Service",
        "apiVersion": "v1",
        "metadata": {"name": name},
        "spec": {"ports": [{"port": 80}], **spec},
    }
    assert stage.send("POST", "/api/v1/namespaces/ns/services", body).code == 201


def execute(url: str, statement: str, **parameters: Any) -> None:
    with closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as connection, connection:
        assert connection.execute(statement, parameters).rowcount == 1


def lose(url: str, resource: Resource, name: str) -> None:
    """Remove a claim from the database without an event."""
    where = "WHERE resource = :resource AND name = :name"
    execute(url, f"UPDATE object SET deleted = 1 {where}", resource=str(resource), name=name)
    execute(url, f"UPDATE event SET type = 3 WHERE {_CURRENT}", resource=str(resource), name=name)


def rewrite(url: str, resource: Resource, name: str, old: str, new: str) -> None:
    statement = f"UPDATE event SET body = replace(body, :old, :new) WHERE {_CURRENT}"
    execute(url, statement, resource=str(resource), name=name, old=old, new=new)


def claims(url: str) -> dict[str, str]:
    """Return the owner of each allocated address and port, as recorded in the log."""
    log = open_log(url, clock=FakeClock(), random=random.Random(2))
    try:
        found = [each for resource in (IP_ADDRESSES, NODE_PORTS) for each in log.snapshot(resource).objects]
        return {each.name: parent.name for each in found if (parent := each.view(Claim).parent)}
    finally:
        log.close()


RIGHT = {"10.96.0.11": "one", "10.96.0.12": "two", "10.96.0.13": "three", "30003": "three"}


def test_a_correct_log_has_no_findings(run: Run, network: str) -> None:
    finished = run("repair", "--database", network)
    assert (finished.code, finished.out, finished.err) == (0, "ok: no errors\n", "")
    assert claims(network) == RIGHT


def test_repairable_findings_are_repaired(run: Run, network: str) -> None:
    lose(network, IP_ADDRESSES, "10.96.0.11")
    lose(network, NODE_PORTS, "30003")
    rewrite(network, IP_ADDRESSES, "10.96.0.12", '"name":"two"', '"name":"gone"')
    finished = run("repair", "--database", network)
    assert finished.code == 0
    lines = [line.split() for line in finished.out.splitlines()]
    assert lines[0] == ["REASON", "OBJECT", "VALUE", "OUTCOME", "MESSAGE"]
    assert [line[:5] for line in lines[1:]] == [
        ["ClusterIPNotAllocated", "services", "ns/one", "10.96.0.11", "repaired"],
        ["ClusterIPNotAllocated", "services", "ns/two", "10.96.0.12", "repaired"],
        ["PortNotAllocated", "services", "ns/three", "30003", "repaired"],
    ]
    assert claims(network) == RIGHT
    assert run("repair", "--database", network).out == "ok: no errors\n"
    told = run("events", "--database", network, "--resource", "events", "-o", "jsonl").out.splitlines()
    assert {json.loads(each)["object"]["involvedObject"]["name"] for each in told} == {"one", "two", "three"}


def test_a_leaked_allocation_is_released_at_once(run: Run, network: str) -> None:
    lose(network, SERVICES, "two")
    finished = run("repair", "--database", network)
    assert finished.code == 0
    assert "released" in finished.out
    assert claims(network) == {name: holder for name, holder in RIGHT.items() if holder != "two"}


def test_ambiguous_findings_are_left_unchanged(run: Run, network: str) -> None:
    rewrite(network, SERVICES, "two", "10.96.0.12", "10.96.0.11")
    finished = run("repair", "--database", network, "-o", "json")
    report = json.loads(finished.out)
    assert finished.code == 1
    assert report["dryRun"] is False
    assert [(each["reason"], each["object"], each["outcome"]) for each in report["findings"]] == [
        ("IPAddressWrongReference", "ipaddresses.networking.k8s.io 10.96.0.12", "released"),
        ("ClusterIPAlreadyAllocated", "services ns/two", "reported"),
    ]
    assert run("repair", "--database", network).code == 1


def test_a_dry_run_changes_nothing(run: Run, network: str) -> None:
    lose(network, IP_ADDRESSES, "10.96.0.11")
    lose(network, SERVICES, "three")
    finished = run("repair", "--database", network, "--dry-run", "-o", "json")
    report = json.loads(finished.out)
    assert finished.code == 1
    assert report["dryRun"] is True
    assert [(each["value"], each["outcome"]) for each in report["findings"]] == [
        ("10.96.0.11", "claim"),
        ("10.96.0.13", "release"),
        ("30003", "release"),
    ]
    assert set(claims(network)) == {"10.96.0.12", "10.96.0.13", "30003"}
    assert run("events", "--database", network, "--resource", str(EVENTS), "-o", "jsonl").out == ""


def test_repair_uses_the_given_ranges(run: Run, network: str) -> None:
    ranges = ["--service-cluster-ip-range", "10.97.0.0/16", "--service-node-port-range", "31000-31999"]
    finished = run("repair", "--database", network, "--dry-run", "-o", "json", *ranges)
    reasons = [each["reason"] for each in json.loads(finished.out)["findings"]]
    assert reasons == ["ClusterIPOutOfRange"] * 3 + ["PortOutOfRange"]


def test_a_missing_database_is_an_error(run: Run, tmp_path: Path) -> None:
    finished = run("repair", "--database", f"sqlite:///{tmp_path / 'none.db'}")
    assert finished.code == 3
    assert finished.err.startswith("error: there is no database")
