"""Helpers for browser tests of the UI page: the elements of the page, and the log."""

from __future__ import annotations

from playwright.sync_api import Page, expect

from ctrlmgr.inspection.database import Database


def go(tab: Page, address: str) -> None:
    """Open another view of the page, as a link on the page would."""
    tab.evaluate("address => { location.hash = address }", address)


def at(tab: Page, revision: int) -> None:
    """Wait until the page shows the state at a revision."""
    expect(tab.locator("main")).to_have_attribute("data-at", str(revision))


def revision_of(database: Database, where: str) -> int:
    """Return the newest revision for which the SQL condition `where` (on the view `timeline`) is true."""
    return int(database.query(f"SELECT max(revision) FROM timeline WHERE {where}").rows[0][0])


def head(database: Database) -> int:
    return revision_of(database, "true")
