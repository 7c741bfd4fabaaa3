"""Tests of the live views of the UI page, in a browser: queues, leaders, health, and a growing log."""

from __future__ import annotations

import re
from pathlib import Path

from playwright.sync_api import Page, expect

from ctrlmgr.clock import SystemClock
from ctrlmgr.eventlog import Author, EventType, Proposal
from ctrlmgr.inspection.database import Database
from ctrlmgr.testing.builders import a_namespace
from ctrlmgr.workqueue import WorkQueue
from tests.ui.browser.page_helpers import at, go, head
from tests.ui.conftest import NewTab
from tests.ui.site import page


def test_queues_are_listed(tab: Page) -> None:
    queue: WorkQueue[str] = WorkQueue("shown-controller", clock=SystemClock())
    for name in ("a", "b", "c"):
        queue.add(name, (1,))
    delivery = queue.get(0)
    assert delivery
    queue.done(delivery.item)
    queue.add_rate_limited("d")
    go(tab, "#/queues")
    tile = tab.locator(".tile", has_text="shown-controller")
    expect(tile.locator(".depth b")).to_have_text("2")
    expect(tile.locator("dl div", has_text="work")).to_contain_text("1")
    expect(tile.locator("dl div", has_text="retried")).to_contain_text("1")
    expect(tile.locator("svg.sparkline")).to_have_count(2)
    expect(tab.locator(".scrubber")).to_be_hidden()
    queue.add("e", (1,))
    expect(tile.locator(".depth b")).to_have_text("3")


def test_leaders_and_their_terms_are_listed(tab: Page, database: Database) -> None:
    go(tab, "#/leaders")
    rows = tab.locator("main tbody tr")
    expect(rows).to_have_count(3)
    expect(tab.locator(".band")).to_have_count(3)
    _, holder, writes = database.query("SELECT term, holder, writes FROM leaders WHERE term = 2").rows[0]
    expect(rows.nth(1)).to_contain_text(holder)
    expect(rows.nth(1).locator("td").last).to_have_text(str(writes))
    first = database.query("SELECT first_revision FROM leaders WHERE term = 2").rows[0][0]
    tab.locator(".band", has_text=holder).click()
    at(tab, first)


def test_the_health_view_names_failures(tab: Page, database: Database) -> None:
    go(tab, "#/health")
    expect(tab.locator(".verdict")).to_have_text("Not ready: one check fails")
    expect(tab.locator(".checks .bad")).to_have_text(re.compile("controller/late.*late is not running"))
    expect(tab.locator(".checks .good", has_text="ping").first).to_be_visible()
    uuid = database.query("SELECT uuid FROM log_head").rows[0][0]
    expect(tab.locator("main")).to_contain_text(uuid)
    expect(tab.locator("main")).to_contain_text("sqlite")


def test_the_page_follows_events_and_pauses_on_request(new_tab: NewTab, tmp_path: Path) -> None:
    with page(f"sqlite:///{tmp_path}/log.db", migrate=True) as served:
        served.log.append([Proposal(EventType.ADDED, a_namespace(), None)], author=Author("alice"))
        newest = served.log.head().revision
        tab = new_tab()
        tab.goto(served.link)
        at(tab, newest)
        served.log.append([Proposal(EventType.ADDED, a_namespace("brand-new"), None)], author=Author("alice"))
        at(tab, newest + 1)
        expect(tab.locator(".events tbody tr").first).to_contain_text("brand-new")
        tab.keyboard.press("l")
        expect(tab.locator("button.live")).to_have_attribute("aria-pressed", "false")
        served.log.append([Proposal(EventType.ADDED, a_namespace("unseen"), None)], author=Author("alice"))
        expect(tab.locator(".plot")).to_have_attribute("aria-valuemax", str(newest + 2))
        at(tab, newest + 1)
        expect(tab.locator(".events")).not_to_contain_text("unseen")


def test_a_stopped_server_is_reported_and_the_content_is_kept(new_tab: NewTab, tmp_path: Path, demo_url: str) -> None:
    tab = new_tab()
    with page(demo_url) as served:
        tab.goto(served.link)
        tab.locator("main[data-at]").wait_for()
    expect(tab.locator(".banner")).to_contain_text("The server does not answer")
    expect(tab.locator(".events tbody tr")).to_have_count(60)


def test_a_log_in_memory_names_its_limits(new_tab: NewTab) -> None:
    with page("memory:") as served:
        tab = new_tab()
        tab.goto(served.link)
        expect(tab.locator(".empty")).to_contain_text("The log is in memory")
        tab.keyboard.press("5")
        expect(tab.locator("main")).to_contain_text("memory")
        expect(tab.locator(".verdict")).to_be_visible()


def test_an_empty_log_is_shown(new_tab: NewTab, tmp_path: Path) -> None:
    with page(f"sqlite:///{tmp_path}/log.db", migrate=True) as served:
        tab = new_tab()
        tab.goto(served.link)
        expect(tab.locator(".empty")).to_contain_text("No events yet")
        tab.keyboard.press("4")
        expect(tab.locator(".empty")).to_contain_text("No leader yet")


def test_the_head_is_the_end_of_the_scrubber(tab: Page, database: Database) -> None:
    expect(tab.locator(".plot")).to_have_attribute("aria-valuemax", str(head(database)))
