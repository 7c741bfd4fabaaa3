"""A browser, and the page in it: a tab of its own for every test."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, expect, sync_playwright

from ctrlmgr.inspection.database import Database, open_database
from tests.ui import story
from tests.ui.browser.chromium import launched
from tests.ui.site import Served, page

PATIENCE = 40_000
"""Milliseconds after which what should have been seen never will be."""

NewTab = Callable[..., Page]


@pytest.fixture(scope="session")
def demo_url(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The URL of the demo's log; nobody writes to it."""
    return story.write(f"sqlite:///{tmp_path_factory.mktemp('demo')}/log.db")


@pytest.fixture(scope="session")
def served(demo_url: str) -> Iterator[Served]:
    """The page over the demo's log."""
    with page(demo_url) as running:
        yield running


@pytest.fixture
def database(demo_url: str) -> Iterator[Database]:
    """The demo's log, to look up what should be on the page."""
    with open_database(demo_url) as opened:
        yield opened


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """A Chromium; not for longer than a module, for as long as it lives an event loop runs in this thread."""
    with sync_playwright() as playwright, launched(playwright) as chromium:
        yield chromium


def is_complaint(said: ConsoleMessage) -> bool:
    """Return whether a console line is an error of the page; refusals of the server are expected in some tests."""
    return said.type == "error" and not said.text.startswith("Failed to load resource")


@pytest.fixture
def new_tab(browser: Browser) -> Iterator[NewTab]:
    """Make tabs that have nothing in common; what their consoles complain of fails the test."""
    contexts: list[BrowserContext] = []
    complaints: list[str] = []

    def make(*, color_scheme: str = "light") -> Page:
        context = browser.new_context(
            viewport={"width": 1440, "height": 900},
            color_scheme="dark" if color_scheme == "dark" else "light",
            timezone_id="UTC",
            reduced_motion="reduce",
        )
        context.set_default_timeout(PATIENCE)
        expect.set_options(timeout=PATIENCE)
        contexts.append(context)
        tab = context.new_page()
        tab.on("pageerror", lambda error: complaints.append(str(error)))
        tab.on("console", lambda said: complaints.append(said.text) if is_complaint(said) else None)
        return tab

    yield make
    for context in contexts:
        context.close()
    assert not complaints


@pytest.fixture
def tab(new_tab: NewTab, served: Served) -> Page:
    """The page over the demo's log, opened by who may see everything."""
    made = new_tab()
    made.goto(served.link)
    made.locator("main[data-at]").wait_for()
    return made
