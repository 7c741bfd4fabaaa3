"""Tests of the timeline on the UI page, in a browser: navigation by mouse, by keys and by names."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, Route, expect

from ctrlmgr.inspection.database import Database
from ctrlmgr.ui.listing import QUIET
from tests.ui.browser.page_helpers import at, go, head, revision_of
from tests.ui.site import PageServer


def test_the_timeline_opens_at_the_newest_revision_with_the_latest_events(tab: Page, database: Database) -> None:
    at(tab, head(database))
    newest = revision_of(database, f"resource NOT IN {QUIET}")
    expect(tab.locator("button.live")).to_have_attribute("aria-pressed", "true")
    rows = tab.locator(".events tbody tr")
    expect(rows).to_have_count(60)
    expect(rows.first).to_contain_text(str(newest))
    expect(tab.locator(".detail h2")).to_have_text(f"Revision {newest}")
    assert tab.locator(".bars path").count() > 3
    expect(tab.locator(".legend")).to_contain_text("endpoint-controller")


def test_a_click_on_an_event_selects_its_revision_and_shows_its_change(tab: Page, database: Database) -> None:
    rollout = revision_of(database, "resource = 'deployments.apps' AND name = 'web'")
    go(tab, f"#/timeline?at={rollout + 3}")
    at(tab, rollout + 3)
    tab.locator(".events tbody tr").nth(3).locator("td").nth(1).click()
    at(tab, rollout)
    assert f"at={rollout}" in tab.url
    expect(tab.locator(".detail .diff")).to_contain_text("spec.template.spec.containers[name=web].image")
    expect(tab.locator(".detail .diff del")).to_have_text("registry.example.com/shop/web:v2")
    expect(tab.locator(".detail .diff ins")).to_have_text("registry.example.com/shop/web:v3")


def test_leases_and_events_are_counted_and_shown_on_request(tab: Page, database: Database) -> None:
    foot = tab.locator(".foot")
    expect(foot).to_contain_text(re.compile(r"\d+ changes of leases and Events are hidden"))
    expect(tab.locator(".events tbody")).not_to_contain_text("leases")
    foot.get_by_role("button", name="show them").click()
    tab.wait_for_url(re.compile("quiet=1"))
    expect(tab.locator(".events tbody tr").first).to_contain_text(str(head(database)))
    expect(tab.locator(".events tbody")).to_contain_text("leases")
    expect(foot).not_to_contain_text("not shown")
    tab.get_by_label("leases and Events").uncheck()
    expect(tab.locator(".events tbody")).not_to_contain_text("leases")


def test_the_address_contains_the_selection(tab: Page, served: PageServer, database: Database) -> None:
    def numbers() -> list[int]:
        return [int(text.replace(",", "")) for text in tab.locator(".events tbody td:first-child").all_inner_texts()]

    tab.get_by_label("kind", exact=True).fill("pods")
    tab.get_by_label("kind", exact=True).press("Enter")
    tab.wait_for_url(re.compile("kind=pods"))
    tab.get_by_label("verb").select_option("DELETED")
    tab.wait_for_url(re.compile("verb=DELETED"))
    tab.get_by_label("namespace").fill("shop")
    tab.get_by_label("namespace").press("Enter")
    tab.get_by_label("filter").fill("web")
    tab.wait_for_url(re.compile("kind=pods&namespace=shop&q=web&verb=DELETED"))
    where = "resource = 'pods' AND type = 'DELETED' AND namespace = 'shop' AND name LIKE '%web%'"
    expected = [row[0] for row in database.query(f"SELECT revision FROM timeline WHERE {where}").rows]
    assert expected
    expect(tab.locator(".events tbody tr")).to_have_count(len(expected))
    assert sorted(numbers()) == sorted(expected)
    address = tab.url
    tab.goto(f"{served.url}/ui/#/health")
    tab.goto(address)
    expect(tab.locator(".events tbody tr")).to_have_count(len(expected))
    expect(tab.get_by_label("verb")).to_have_value("DELETED")
    expect(tab.get_by_label("kind", exact=True)).to_have_value("pods")
    tab.get_by_label("filter").fill("no such thing")
    expect(tab.locator(".foot")).to_contain_text("No events match these filters up to this moment")
    tab.get_by_role("button", name="clear").click()
    expect(tab.locator(".events tbody tr")).to_have_count(60)


def test_the_list_scrolls_back_to_the_beginning(tab: Page, database: Database) -> None:
    go(tab, "#/timeline?kind=pods")
    rows = tab.locator(".events tbody tr")
    expect(rows.filter(has_not_text="pods")).to_have_count(0)
    everything = len(database.query("SELECT revision FROM timeline WHERE resource = 'pods'").rows)
    shown = 60
    while shown < everything:
        expect(rows).to_have_count(shown)
        tab.locator(".foot").get_by_role("button", name="load older events").click()
        shown = min(shown + 60, everything)
    expect(rows).to_have_count(everything)
    expect(tab.locator("button.live")).to_have_attribute("aria-pressed", "false")


def test_the_list_scrolls_back_while_new_events_arrive(tab: Page, database: Database) -> None:
    """New events that arrive while the page is open do not undo the user's click."""
    newest = head(database)

    def at_first(route: Route) -> None:
        answer = route.fetch()
        route.fulfill(response=answer, json={**answer.json(), "head": newest - 1})

    held: list[Route] = []

    def hold(route: Route) -> None:
        held.append(route)

    tab.route("**/ui/api/status*", at_first)
    rows = tab.locator(".events tbody tr")
    tab.reload()
    at(tab, newest - 1)
    expect(rows).to_have_count(60)
    tab.route(f"**/ui/api/events?at={newest}&*", hold)
    with tab.expect_request(f"**/ui/api/events?at={newest}&*"):
        tab.unroute("**/ui/api/status*")
    with tab.expect_response("**/ui/api/events*"):
        tab.locator(".foot").get_by_role("button", name="load older events").click()
    with tab.expect_response(f"**/ui/api/events?at={newest - 1}&*"):
        for each in held:
            each.continue_()
    expect(rows).to_have_count(120)


def test_dragging_selects_and_keys_step(tab: Page, database: Database) -> None:
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
    tab.get_by_role("button", name="previous revision").click()
    at(tab, there - 10)
    tab.keyboard.press("Home")
    at(tab, 1)
    tab.keyboard.press("End")
    at(tab, head(database))
    expect(tab.locator("button.live")).to_have_attribute("aria-pressed", "true")


def test_a_revision_or_a_time_can_be_typed(tab: Page, database: Database) -> None:
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
    expect(tab.locator(".scrubber .problem")).to_contain_text("is not a moment")
    field.fill("12")
    expect(tab.locator(".scrubber .problem")).to_be_empty()


def test_the_timeline_zooms_in_and_out(tab: Page, database: Database) -> None:
    go(tab, "#/timeline?at=200")
    at(tab, 200)
    tab.keyboard.press("+")
    tab.keyboard.press("+")
    tab.wait_for_url(re.compile(r"from=\d+.*to=\d+"))
    expect(tab.get_by_role("button", name="whole log")).to_be_visible()
    tab.keyboard.press("0")
    expect(tab.get_by_role("button", name="whole log")).to_be_hidden()
    assert "from=" not in tab.url


def test_bars_count_writes_by_revision(tab: Page) -> None:
    tab.get_by_role("button", name="what", exact=True).click()
    expect(tab.locator(".legend")).to_contain_text("leases")
    tab.get_by_role("button", name="revisions", exact=True).click()
    tab.wait_for_url(re.compile("axis=revision.*by=resource"))
    before = tab.locator(".bars path").count()
    tab.locator(".legend button", has_text="leases").click()
    expect(tab.locator(".bars path")).to_have_count(before - 1)
    tab.locator(".plot").hover(position={"x": 30, "y": 60})
    expect(tab.locator(".bubble")).to_contain_text(re.compile(r"revisions? \d"))


@pytest.mark.parametrize("by", ["actor", "resource"])
def test_a_row_has_the_colour_of_the_legend(tab: Page, served: PageServer, by: str) -> None:
    tab.goto(f"{served.url}/ui/#/timeline?at=300&by={by}")
    tab.reload()
    at(tab, 300)
    dots = tab.locator(".events tbody .dot")
    expect(dots).to_have_count(60)
    column = tab.locator(f".events tbody td:has(.dot) {'.actor' if by == 'actor' else '.kind'}")
    legend = {each: tab.locator(".legend button", has_text=each) for each in set(column.all_inner_texts())}
    coloured = 0
    for index, name in enumerate(column.all_inner_texts()):
        if legend[name].count() == 1:
            coloured += 1
            assert dots.nth(index).get_attribute("class") == legend[name].locator(".dot").get_attribute("class")
    assert coloured > 20


def test_incomplete_bars_are_marked_until_they_are_complete(tab: Page, database: Database) -> None:
    def in_part(route: Route) -> None:
        answer = route.fetch()
        route.fulfill(response=answer, json={**answer.json(), "counted": 123})

    tab.route("**/ui/api/timeline*", in_part)
    go(tab, "#/timeline?by=resource")
    expect(tab.locator(".options")).to_contain_text("counted up to revision 123, counting continues")
    tab.unroute_all(behavior="wait")
    expect(tab.locator(".options")).not_to_contain_text("counted")


def test_a_link_opens_the_same_view_again(tab: Page, served: PageServer) -> None:
    address = f"{served.url}/ui/#/timeline?at=77&axis=revision&by=resource"
    tab.goto(address)
    at(tab, 77)
    tab.reload()
    at(tab, 77)
    assert tab.url == address
    expect(tab.get_by_role("button", name="what", exact=True)).to_have_attribute("aria-pressed", "true")


def test_keys_open_the_views_and_are_listed(tab: Page) -> None:
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
    expect(tab.locator("dialog")).to_contain_text("follow the newest revision")
    tab.keyboard.press("Escape")
    expect(tab.locator("dialog")).to_have_count(0)
