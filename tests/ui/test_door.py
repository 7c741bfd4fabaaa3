"""Tests of access to the UI page: tokens in links and in the input field, which data is shown, and that no foreign
content is loaded.
"""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Dialog, Page, expect

from tests.ui.browser.page_helpers import go
from tests.ui.conftest import NewTab
from tests.ui.site import TOKEN, PageServer


def test_the_token_of_a_link_is_hidden_at_once(new_tab: NewTab, served: PageServer) -> None:
    tab = new_tab()
    tab.goto(served.link)
    tab.locator("main[data-at]").wait_for()
    assert "token" not in tab.url
    assert tab.evaluate("sessionStorage.getItem('ctrlmgr.token')") == TOKEN
    assert tab.evaluate("localStorage.length") == 0
    tab.go_back()
    assert TOKEN not in tab.url


@pytest.mark.parametrize("agrees", [False, True])
def test_a_link_replaces_the_token_of_a_tab_only_after_confirmation(
    new_tab: NewTab, served: PageServer, agrees: bool
) -> None:
    tab = new_tab()
    asked: list[str] = []

    def answer(dialog: Dialog) -> None:
        asked.append(dialog.message)
        dialog.accept() if agrees else dialog.dismiss()

    tab.on("dialog", answer)
    for _ in range(2):
        tab.goto("about:blank")
        tab.goto(served.link)
        tab.locator("main[data-at]").wait_for()
    assert asked == []
    tab.goto("about:blank")
    tab.goto(f"{served.url}/ui/#token=anothers")
    tab.locator("main[data-at], section.door").first.wait_for()
    assert len(asked) == 1
    assert "anothers" not in tab.url
    if agrees:
        expect(tab.locator("h1")).to_have_text("Unknown token")
    else:
        assert tab.evaluate("sessionStorage.getItem('ctrlmgr.token')") == TOKEN


def test_without_a_token_the_page_shows_a_sign_in(new_tab: NewTab, served: PageServer) -> None:
    tab = new_tab()
    tab.goto(f"{served.url}/ui/#/objects?resource=services&at=200")
    expect(tab.locator("h1")).to_have_text("Sign in")
    expect(tab.locator(".reason")).to_contain_text("forbidden")
    expect(tab.locator(".scrubber")).to_be_hidden()
    tab.get_by_label("token").fill("nonsense")
    tab.get_by_role("button", name="Open").click()
    expect(tab.locator("h1")).to_have_text("Unknown token")
    tab.get_by_label("token").fill(TOKEN)
    tab.keyboard.press("Enter")
    expect(tab.locator("table.objects")).to_contain_text("checkout")
    assert "at=200" in tab.url


def test_the_dark_theme_is_dark(new_tab: NewTab, served: PageServer) -> None:
    def brightness(scheme: str) -> int:
        tab = new_tab(color_scheme=scheme)
        tab.goto(served.link)
        tab.locator("main[data-at]").wait_for()
        colours = re.findall(r"\d+", tab.evaluate("getComputedStyle(document.documentElement).backgroundColor"))
        return sum(map(int, colours[:3]))

    assert brightness("dark") < 150 < 600 < brightness("light")


def test_no_content_is_loaded_from_other_hosts(new_tab: NewTab, served: PageServer) -> None:
    tab = new_tab()
    asked: list[str] = []
    tab.on("request", lambda request: asked.append(request.url))
    tab.goto(served.link)
    for view in ("objects", "change?at=100", "queues", "leaders", "requests", "health"):
        go(tab, f"#/{view}")
        tab.locator(".heading, table, .grid, .tile, .empty").first.wait_for()
    assert asked
    assert all(each.startswith(f"{served.url}/ui/") for each in asked)
    assert not any(TOKEN in each for each in asked)


def test_an_unknown_view_shows_the_timeline(tab: Page) -> None:
    go(tab, "#/nowhere?at=50")
    expect(tab.locator(".detail h2")).to_have_text("Revision 50")
