"""Tests that axe-core finds no accessibility errors in any view of the UI page: light and dark, on a desktop and on a
phone.
"""

from __future__ import annotations

from importlib import resources
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from ctrlmgr.inspection.database import Database
from tests.ui.conftest import NewTab
from tests.ui.site import PageServer
from tests.ui.test_everyone import open_view, views

AXE = (resources.files("axe_playwright_python") / "axe.min.js").read_text(encoding="utf-8")
SCREENS = {"desk": (1440, 900), "phone": (390, 844)}

VIOLATIONS = """async () => {
  const { passes, violations } = await axe.run(document, { resultTypes: ["violations"] });
  return [
    passes.length,
    violations.flatMap(({ id, nodes }) =>
      nodes.map(({ target, failureSummary }) => `${id}: ${target.join(" ")}: ${failureSummary}`)),
  ];
}"""


def complaints(tab: Page) -> list[str]:
    """Return the accessibility errors that axe-core finds on the current page."""
    if not tab.evaluate("typeof axe === 'object'"):
        tab.evaluate(AXE)
    found: list[Any] = tab.evaluate(VIOLATIONS)
    passed, violations = found
    assert passed > 10, "axe-core has looked at nothing"
    return [*violations]


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("screen", SCREENS)
def test_axe_finds_no_violation(
    new_tab: NewTab, served: PageServer, database: Database, scheme: str, screen: str
) -> None:
    width, height = SCREENS[screen]
    tab = new_tab(color_scheme=scheme)
    tab.set_viewport_size({"width": width, "height": height})
    tab.goto(served.link)
    tab.locator("main[data-at]").wait_for()
    problems: dict[str, list[str]] = {}
    for name, address in views(database).items():
        open_view(tab, name, address)
        expect(tab.locator("h1")).to_have_count(1)
        if found := complaints(tab):
            problems[name] = found
    tab.keyboard.press("?")
    tab.get_by_role("dialog").wait_for()
    if found := complaints(tab):
        problems["the keys"] = found
    assert not problems, "\n".join(sorted({each for found in problems.values() for each in found}))


def test_axe_detects_a_violation(tab: Page) -> None:
    tab.evaluate("document.querySelector('main').insertAdjacentHTML('beforeend', '<img src=\"\">')")
    assert any(each.startswith("image-alt") for each in complaints(tab))


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_no_violation_on_the_sign_in_page(new_tab: NewTab, served: PageServer, scheme: str) -> None:
    tab = new_tab(color_scheme=scheme)
    tab.goto(f"{served.url}/ui/")
    tab.get_by_role("heading", name="Sign in").wait_for()
    assert not complaints(tab)
