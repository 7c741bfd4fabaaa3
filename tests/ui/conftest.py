"""Fixtures with a browser and the UI page: every test gets a new tab."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, expect, sync_playwright

from ctrlmgr.inspection.database import Database, open_database
from tests.ui import story
from tests.ui.browser.chromium import launched
from tests.ui.site import PageServer, page

PATIENCE = 40_000
"""Timeout for elements that a test expects on the page, in milliseconds."""

NewTab = Callable[..., Page]


@pytest.fixture(scope="session")
def demo_url(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The URL of the demo's log, which tests must not change."""
    return story.write(f"sqlite:///{tmp_path_factory.mktemp('demo')}/log.db")


@pytest.fixture(scope="session")
def served(demo_url: str) -> Iterator[PageServer]:
    """The UI page, served for the demo's log."""
    with page(demo_url) as running:
        yield running


@pytest.fixture
def database(demo_url: str) -> Iterator[Database]:
    """The database of the demo's log, from which tests read the values that the page must show."""
    with open_database(demo_url) as opened:
        yield opened


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """A Chromium that only one module uses, because an event loop runs in this thread as long as the browser exists."""
    with sync_playwright() as playwright, launched(playwright) as chromium:
        yield chromium


def is_complaint(said: ConsoleMessage) -> bool:
    """Return whether a console line reports an error of the page; some tests expect the server to refuse requests."""
    return said.type == "error" and not said.text.startswith("Failed to load resource")


@pytest.fixture
def new_tab(browser: Browser) -> Iterator[NewTab]:
    """A function that opens tabs without shared state; an error in the console of a tab fails the test."""
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
def tab(new_tab: NewTab, served: PageServer) -> Page:
    """A tab with the UI page for the demo's log, opened by a user with all permissions."""
    made = new_tab()
    made.goto(served.link)
    made.locator("main[data-at]").wait_for()
    return made
