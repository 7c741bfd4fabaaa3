"""Tests of audited requests on the UI page."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from ctrlmgr.errors import BadRequest
from ctrlmgr.inspection.audited_requests import FILE, Row, Store
from ctrlmgr.testing import FakeClock
from ctrlmgr.ui.parameters import Parameters
from ctrlmgr.ui.requests_page import Requests
from tests.ui.browser.page_helpers import go
from tests.ui.conftest import NewTab
from tests.ui.site import page


def row(id: str, received: int, user: str, code: int) -> Row:
    what = ("list", "", "secrets", "", "default", "", "/api/v1/namespaces/default/secrets")
    why = "no" if code == 403 else ""
    return Row(id, received, 0.002, user, None, *what, code, "", why, None, None, "192.0.2.1", "", None)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    clock = FakeClock()
    store = Store(tmp_path / FILE, 3600.0, clock=clock)
    assert store.write([row("a", clock.now(), "alice", 200), row("b", clock.now() + 1, "bob", 403)])
    store.close()
    return tmp_path


def test_the_newest_requests_are_listed_first_and_can_be_filtered(folder: Path) -> None:
    def newest_requests(**query: str) -> list[tuple[str, int]]:
        answer = Requests(folder).newest(Parameters({name: [value] for name, value in query.items()}))
        assert answer["kept"]
        return [(each["user"], each["code"]) for each in answer["requests"]]

    assert newest_requests() == [("bob", 403), ("alice", 200)]
    assert newest_requests(refused="yes") == [("bob", 403)]
    assert newest_requests(user="alice") == [("alice", 200)]
    assert newest_requests(resource="pods") == []
    with pytest.raises(BadRequest):
        newest_requests(refused="perhaps")


def test_a_request_is_shown_with_its_time(folder: Path) -> None:
    newest = Requests(folder).newest(Parameters({}))["requests"][0]
    assert newest["receivedAt"] == FakeClock().now() + 1
    newest_requests = (newest["what"], newest["why"], newest["milliseconds"], newest["source"])
    assert newest_requests == ("secrets", "no", 2.0, "192.0.2.1")


def test_without_an_audit_store_no_requests_are_listed(tmp_path: Path) -> None:
    for kept in (None, tmp_path):
        assert Requests(kept).newest(Parameters({})) == {"kept": False, "requests": []}


def test_the_page_reports_a_missing_audit_store(tab: Page) -> None:
    go(tab, "#/requests")
    expect(tab.get_by_role("heading", name="No requests are recorded")).to_be_visible()


def test_the_page_lists_requests_including_refused_ones(folder: Path, demo_url: str, new_tab: NewTab) -> None:
    tab = new_tab()
    with page(demo_url, requests=folder) as served:
        tab.goto(served.link)
        go(tab, "#/requests")
        rows = tab.locator("tbody tr")
        expect(rows).to_have_count(2)
        tab.get_by_role("link", name="Refused only").click()
        expect(rows).to_have_count(1)
        expect(rows.first).to_contain_text("bob")
        tab.close()
