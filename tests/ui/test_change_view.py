"""Tests of the graph of causes and effects on the UI page, in a browser."""

from __future__ import annotations

import re
from pathlib import Path
from random import Random

from playwright.sync_api import Page, expect

from ctrlmgr.clock import SystemClock
from ctrlmgr.eventlog import Author, Cause, EventType, Outcome, Proposal, open_log
from ctrlmgr.inspection import causes
from ctrlmgr.inspection.database import Database
from ctrlmgr.testing.builders import a_namespace
from tests.ui.browser.page_helpers import at, go, revision_of
from tests.ui.conftest import NewTab
from tests.ui.site import page

OVERLAPS = """() => {
    const found = [...document.querySelectorAll(".graph .box, .tools button")];
    const boxes = found.map((box) => box.getBoundingClientRect());
    return boxes.some((a, i) => boxes.some((b, j) => i < j &&
        a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom));
}"""
STANDING = "nodes => nodes.map((node) => `${node.dataset.node.slice(1)} ${node.dataset.alike ?? ''}`)"
"""Return the revisions of the graph's nodes; a group of similar events has one revision."""

LEFTWARD = """() => [...document.querySelectorAll(".graph .edge")].filter((edge) => {
    const [from, to] = [edge.dataset.from, edge.dataset.to]
        .map((id) => document.querySelector(`[data-node="${id}"]`).getBoundingClientRect());
    return from.right > to.left;
}).length"""


def revisions(node: causes.Node) -> set[int]:
    return {node.revision}.union(*map(revisions, node.links))


def test_the_graph_contains_every_cause_and_every_effect(tab: Page, database: Database) -> None:
    replicas = revision_of(database, "resource = 'replicasets.apps' AND name LIKE 'gateway%' AND type = 'ADDED'")
    wanted = revisions(causes.why(database, replicas)) | revisions(causes.effects(database, replicas))
    assert len(wanted) > 5
    go(tab, f"#/change?at={replicas}")
    at(tab, replicas)
    nodes = tab.locator(".graph a.event")
    expect(nodes.first).to_be_visible()
    drawn = nodes.evaluate_all(STANDING)
    assert {int(each) for each in " ".join(drawn).split()} == wanted
    expect(tab.locator(".graph .run", has_text="deployment-controller").first).to_be_visible()
    expect(tab.locator(".graph .root")).to_have_count(1)
    assert not tab.evaluate(OVERLAPS)
    assert tab.evaluate(LEFTWARD) == 0


def test_nodes_are_links_and_reconciles_have_details(tab: Page, database: Database) -> None:
    written = revision_of(database, "resource = 'endpoints' AND name = 'web'")
    go(tab, f"#/change?at={written}")
    at(tab, written)
    expect(tab.locator(".facts")).to_contain_text("endpoint-controller")
    expect(tab.locator(".card", has_text="Changed fields")).to_contain_text("subsets[0].addresses[ip=")
    tab.locator(".graph .run", has_text="replicaset-controller").first.click()
    expect(tab.locator(".facts")).to_contain_text("replicaset-controller")
    assert "run=r" in tab.url
    cause = tab.locator(".graph a.event:not(.root)").first
    revision = int(str(cause.get_attribute("data-node")).removeprefix("e"))
    cause.click()
    at(tab, revision)
    expect(tab.locator("h1")).to_have_text(f"Revision {revision}")
    tab.go_back()
    at(tab, written)


def test_the_card_names_the_cause_in_the_graph_after_a_step(tab: Page, database: Database) -> None:
    written = revision_of(database, "resource = 'endpoints' AND name = 'web'")
    other = revision_of(database, "resource = 'replicasets.apps' AND name LIKE 'gateway%' AND type = 'ADDED'")
    go(tab, f"#/change?at={written}")
    at(tab, written)
    tab.locator(".graph .run", has_text="endpoint-controller").first.click()
    tab.wait_for_url(re.compile("run=r"))
    chosen = tab.url.rpartition("run=")[2]
    go(tab, f"#/change?at={other}&run={chosen}")  # without the position that a step along the time sets
    at(tab, other)
    expect(tab.locator(".facts")).to_contain_text("deployment-controller")
    expect(tab.locator("main")).not_to_contain_text("Requested by")


def test_a_requested_change_has_no_inferred_cause(tab: Page) -> None:
    go(tab, "#/change?at=1")
    at(tab, 1)
    expect(tab.locator("main")).to_contain_text("Requested by alice")
    expect(tab.locator(".graph .box")).to_have_count(1)


def crowded(url: str, *, alike: bool = False) -> int:
    """Write a change with a hundred and fifty causes; return the revision of the change."""
    log = open_log(url, clock=SystemClock(), random=Random(1), migrate=True)
    author = Author("system:controller:crowd", "ctrlmgr")
    for number in range(150):  # each by another user, so that none are similar
        made = [Proposal(EventType.ADDED, a_namespace(f"cause-{number:03d}"), None)]
        log.append(made, author=Author("alice" if alike else f"alice-{number}"))
    cause = Cause(7, "crowd", "all", 1, SystemClock().now(), tuple(range(1, 151)))
    log.append([Proposal(EventType.ADDED, a_namespace("effect"), None)], author=author, cause=cause)
    log.finish(7, Outcome(1500, "error", "<b>not</b> everything was done"))
    written = log.head().revision
    log.close()
    return written


def test_a_hundred_nodes_are_placed_and_the_rest_is_counted(new_tab: NewTab, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/log.db"
    written = crowded(url)
    with page(url) as served:
        tab = new_tab()
        tab.goto(served.link)
        go(tab, f"#/change?at={written}")
        at(tab, written)
        expect(tab.locator(".graph a.event")).to_have_count(100)
        expect(tab.locator(".graph .hidden")).to_have_text("and 51 more")
        expect(tab.locator(".graph .run.bad")).to_have_count(1)
        expect(tab.locator(".facts")).to_contain_text("<b>not</b> everything was done")
        assert not tab.evaluate(OVERLAPS)
        before = tab.locator(".graph").get_attribute("viewBox")
        tab.get_by_role("button", name="farther").click()
        assert tab.locator(".graph").get_attribute("viewBox") != before


def test_equal_changes_are_one_node(new_tab: NewTab, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/log.db"
    written = crowded(url, alike=True)
    with page(url) as served:
        tab = new_tab()
        tab.goto(served.link)
        go(tab, f"#/change?at={written}")
        at(tab, written)
        expect(tab.locator(".graph a.event")).to_have_count(2)
        one = tab.locator(".graph a.event:not(.root)")
        expect(one.locator(".name")).to_contain_text("99 namespaces: cause-051")
        expect(one.locator("title")).to_contain_text("150 cause-149")
        expect(tab.locator(".legend-line")).to_contain_text("100 events, 1 reconciles")
        expect(tab.locator(".facts")).to_contain_text("150 changes")
