"""The timeline in a browser: the way through time, by mouse, by keys and by name."""

from __future__ import annotations

import re

from playwright.sync_api import Page, expect

from ctrlmgr.inspection.database import Database
from tests.ui.looking import at, go, head, revision_of
from tests.ui.site import Served


def test_it_opens_at_the_newest_revision_with_what_happened_last(tab: Page, database: Database) -> None:
    newest = head(database)
    at(tab, newest)
    expect(tab.locator("button.live")).to_have_attribute("aria-pressed", "true")
    rows = tab.locator(".events tbody tr")
    expect(rows).to_have_count(60)
    expect(rows.first).to_contain_text(str(newest))
    expect(tab.locator(".detail h2")).to_have_text(f"Revision {newest}")
    assert tab.locator(".bars path").count() > 3
    expect(tab.locator(".legend")).to_contain_text("endpoint-controller")


def test_a_click_on_an_event_goes_there_and_shows_what_it_changed(tab: Page, database: Database) -> None:
    rollout = revision_of(database, "resource = 'deployments.apps' AND name = 'web'")
    go(tab, f"#/timeline?at={rollout + 3}")
    at(tab, rollout + 3)
    tab.locator(".events tbody tr").nth(3).locator("td").nth(1).click()
    at(tab, rollout)
    assert f"at={rollout}" in tab.url
    expect(tab.locator(".detail .diff")).to_contain_text("spec.template.spec.containers[name=web].image")
    expect(tab.locator(".detail .diff del")).to_have_text("registry.example.com/shop/web:v2")
    expect(tab.locator(".detail .diff ins")).to_have_text("registry.example.com/shop/web:v3")


def test_dragging_travels_and_stepping_steps(tab: Page, database: Database) -> None:
    box = tab.locator(".plot").bounding_box()
    assert box
    middle = box["y"] + box["height"] / 2
    tab.mouse.move(box["x"] + box["width"] - 10, middle)
    tab.mouse.down()
    tab.mouse.move(box["x"] + box["width"] * 0.5, middle)
    tab.mouse.move(box["x"] + box["width"] * 0.25, middle)
    tab.mouse.up()
    expect(tab.locator("button.live")).to_have_attribute("aria-pressed", "false")
    tab.wait_for_url(re.compile(r"at=\d+"))
    found = re.search(r"at=(\d+)", tab.url)
    assert found
    there = int(found[1])
    assert 1 < there < head(database) / 2
    at(tab, there)
    tab.keyboard.press("ArrowRight")
    at(tab, there + 1)
    tab.keyboard.press("Shift+ArrowLeft")
    at(tab, there - 9)
    tab.get_by_role("button", name="one revision back").click()
    at(tab, there - 10)
    tab.keyboard.press("Home")
    at(tab, 1)
    tab.keyboard.press("End")
    at(tab, head(database))
    expect(tab.locator("button.live")).to_have_attribute("aria-pressed", "true")


def test_a_revision_and_a_time_can_be_typed(tab: Page, database: Database) -> None:
    tab.keyboard.press("r")
    field = tab.get_by_label("revision or time")
    expect(field).to_be_focused()
    field.fill("123")
    field.press("Enter")
    at(tab, 123)
    expect(tab.locator(".when")).to_contain_text("2026-01-02")
    field.fill("2026-01-02T09:51:10Z")
    field.press("Enter")
    at(tab, revision_of(database, "time <= '2026-01-02T09:51:10'"))
    field.fill("tomorrow, perhaps")
    field.press("Enter")
    expect(tab.locator(".scrubber .problem")).to_contain_text("is no moment")


def test_a_closer_look_and_the_whole_again(tab: Page, database: Database) -> None:
    go(tab, "#/timeline?at=200")
    at(tab, 200)
    tab.keyboard.press("+")
    tab.keyboard.press("+")
    tab.wait_for_url(re.compile(r"from=\d+.*to=\d+"))
    expect(tab.get_by_role("button", name="whole log")).to_be_visible()
    tab.keyboard.press("0")
    expect(tab.get_by_role("button", name="whole log")).to_be_hidden()
    assert "from=" not in tab.url


def test_bars_by_what_was_written_along_revisions(tab: Page) -> None:
    tab.get_by_role("button", name="what", exact=True).click()
    expect(tab.locator(".legend")).to_contain_text("leases")
    tab.get_by_role("button", name="revisions", exact=True).click()
    tab.wait_for_url(re.compile("axis=revision.*by=resource"))
    before = tab.locator(".bars path").count()
    tab.locator(".legend button", has_text="leases").click()
    expect(tab.locator(".bars path")).to_have_count(before - 1)
    tab.locator(".plot").hover(position={"x": 30, "y": 60})
    expect(tab.locator(".bubble")).to_contain_text(re.compile(r"revisions? \d"))


def test_a_link_opens_the_same_view_again(tab: Page, served: Served) -> None:
    address = f"{served.url}/ui/#/timeline?at=77&axis=revision&by=resource"
    tab.goto(address)
    at(tab, 77)
    tab.reload()
    at(tab, 77)
    assert tab.url == address
    expect(tab.get_by_role("button", name="what", exact=True)).to_have_attribute("aria-pressed", "true")


def test_keys_lead_to_the_views_and_are_listed(tab: Page) -> None:
    for key, word in (
        ("2", "objects"),
        ("3", "queues"),
        ("4", "leaders"),
        ("5", "health"),
        ("6", "requests"),
        ("1", "timeline"),
    ):
        tab.keyboard.press(key)
        tab.wait_for_url(re.compile(f"#/{word}"))
    tab.keyboard.press("?")
    expect(tab.locator("dialog")).to_contain_text("follow what happens")
    tab.keyboard.press("Escape")
    expect(tab.locator("dialog")).to_have_count(0)
