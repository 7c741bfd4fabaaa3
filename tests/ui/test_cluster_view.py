"""Tests of the view of running and pending pods by node: its data, and how a browser shows it."""

from __future__ import annotations

from pathlib import Path
from random import Random

from playwright.sync_api import Page, expect

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import NODES, PODS, Key
from ctrlmgr.clock import SystemClock
from ctrlmgr.eventlog import Author, EventType, Proposal, open_log
from ctrlmgr.inspection import historical_state, moment_parser
from ctrlmgr.inspection.database import Database
from ctrlmgr.ui.cluster_page import Cluster
from ctrlmgr.ui.parameters import Parameters
from ctrlmgr.ui.reader import Reader
from tests.ui.browser.page_helpers import go


def made(kind: str, name: str, **fields: object) -> Object:
    space = {} if kind == "Node" else {"namespace": "a"}
    return Object.from_dict(
        {"kind": kind, "apiVersion": "v1", "metadata": {"name": name, **space, "uid": name}, **fields}
    )


def test_nodes_and_waiting_pods_are_listed(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'log.db'}"
    ready = {"allocatable": {"cpu": "2", "memory": "1Gi"}, "conditions": [{"type": "Ready", "status": "True"}]}
    asks = {"containers": [{"name": "c", "resources": {"requests": {"cpu": "500m"}}}]}
    why = {"type": "PodScheduled", "status": "False", "message": "0/1 nodes are available."}
    objects = [
        made("Node", "n", spec={"taints": [{"key": "k", "effect": "NoSchedule"}]}, status=ready),
        made(
            "Pod",
            "runs",
            spec={"nodeName": "n", **asks},
            status={"phase": "Running", "conditions": ready["conditions"]},
        ),
        made("Pod", "ended", spec={"nodeName": "n", **asks}, status={"phase": "Succeeded"}),
        made("Pod", "waits", spec=asks, status={"phase": "Pending", "conditions": [why]}),
    ]
    log = open_log(url, clock=SystemClock(), random=Random(1), migrate=True)
    for each in objects:
        log.append([Proposal(EventType.ADDED, each, 0)], author=Author("test"))
    log.close()
    reader = Reader(url)
    found = Cluster(reader).cluster(Parameters({}))
    before = Cluster(reader).cluster(Parameters({"at": ["1"]}))
    reader.close()
    (node,) = found["nodes"]
    assert (node["ready"], node["taints"], node["used"]["cpu"], node["count"]) == ("True", ["k:NoSchedule"], 500, 2)
    assert [(each["name"], each["state"], each["ready"]) for each in node["pods"]] == [
        ("ended", "Succeeded", False),
        ("runs", "Running", True),
    ]
    assert found["waiting"] == [{"namespace": "a", "name": "waits", "why": "0/1 nodes are available.", "nominated": ""}]
    assert (before["nodes"][0]["count"], before["waits"]) == (0, 0)


def test_a_browser_shows_nodes_and_their_pods(tab: Page, database: Database) -> None:
    head = moment_parser.head_of(database)
    nodes = historical_state.objects(database, NODES, at=head)
    pods = historical_state.objects(database, PODS, at=head)
    go(tab, "#/cluster")
    expect(tab.locator(".card.node")).to_have_count(len(nodes))
    placed = [each for each in pods if each.to_dict()["spec"].get("nodeName") in {node.name for node in nodes}]
    expect(tab.locator(".card.node .pods a")).to_have_count(len(placed))
    tab.locator(".card.node h2 a").first.click()
    expect(tab).to_have_url(f"{tab.url.partition('#')[0]}#/object?name={nodes[0].name}&resource=nodes")
    assert Key("", nodes[0].name) == nodes[0].key
