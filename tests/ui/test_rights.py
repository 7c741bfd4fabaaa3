"""Tests of the UI page for a user with few permissions: the page names the missing permission instead of showing an
empty view.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from ctrlmgr.authentication.user import AUTHENTICATED, User
from ctrlmgr.authorization.attributes import Attributes
from ctrlmgr.authorization.authorizer import ALLOWED, NO_OPINION, Immediate, Verdict
from ctrlmgr.inspection.database import Database
from tests.ui.browser.page_helpers import go, head
from tests.ui.conftest import NewTab
from tests.ui.site import ADMIN, TOKEN, PageServer, page

ANN = User("ann", "", (AUTHENTICATED,))
"""A user that may open the page, and has no permissions on objects."""
SHOP = User("shop-viewer", "", (AUTHENTICATED,))
"""A user that may read the Services of one namespace."""
TOKENS = {"anns-token": ANN, "shops-token": SHOP}
EVERYTHING = '*.* is forbidden: User "ann" cannot list resource "*" in API group "*" at the cluster scope'
PODS = 'pods is forbidden: User "ann" cannot list resource "pods" in API group "" at the cluster scope'


class Rights(Immediate):
    """An authorizer that lets all users open the page, and lets one user read the Services of one namespace."""

    def authorize(self, user: User, attributes: Attributes) -> Verdict:
        if user.name == ADMIN.name or not attributes.is_resource:
            return ALLOWED
        services = (attributes.resource, attributes.namespace) == ("services", "shop")
        return ALLOWED if user.name == SHOP.name and services else NO_OPINION


@pytest.fixture(scope="module")
def guarded(demo_url: str) -> Iterator[PageServer]:
    with page(demo_url, users=TOKENS, authorizer=Rights()) as running:
        yield running


def opened(new_tab: NewTab, guarded: PageServer, token: str) -> Page:
    tab = new_tab()
    tab.goto(f"{guarded.url}/ui/#token={token}")
    tab.locator("main .empty, main[data-at]").first.wait_for()
    return tab


def test_a_user_without_rights_sees_the_required_right(new_tab: NewTab, guarded: PageServer) -> None:
    tab = opened(new_tab, guarded, "anns-token")
    for view in ("", "cluster"):
        go(tab, f"#/{view}")
        expect(tab.locator(".empty h2")).to_have_text("Access denied")
        expect(tab.locator(".empty .reason")).to_have_text(EVERYTHING)
    go(tab, "#/objects")
    expect(tab.locator(".empty h2")).to_have_text("Access denied")
    expect(tab.locator(".empty p")).to_have_text(PODS)
    go(tab, "#/leaders")
    expect(tab.locator(".empty p")).to_contain_text('cannot list resource "leases"')
    expect(tab.locator(".empty p")).to_contain_text('in the namespace "kube-system"')
    expect(tab.locator("main")).not_to_contain_text("checkout")


def test_a_user_of_one_namespace_sees_it_and_the_missing_rights(
    new_tab: NewTab, guarded: PageServer, database: Database
) -> None:
    tab = opened(new_tab, guarded, "shops-token")
    go(tab, "#/objects?resource=services&namespace=shop")
    expect(tab.locator("table.objects")).to_contain_text("checkout")
    go(tab, "#/objects?resource=services&namespace=payments")
    expect(tab.locator(".empty p")).to_contain_text(
        'User "shop-viewer" cannot list resource "services" in API group "" in the namespace "payments"'
    )
    go(tab, "#/object?resource=secrets&namespace=shop&name=none")
    expect(tab.locator(".empty p")).to_contain_text('User "shop-viewer" cannot get resource "secrets"')
    go(tab, f"#/?at={head(database)}")
    expect(tab.locator("table.events tbody tr").first).to_contain_text("services")


def test_administrators_see_no_message_about_rights(new_tab: NewTab, guarded: PageServer) -> None:
    tab = new_tab()
    tab.goto(guarded.link)
    tab.locator("main[data-at]").wait_for()
    asked = "fetch('api/status', {headers: {authorization: 'Bearer TOKEN'}}).then(answer => answer.json())"
    assert tab.evaluate(asked.replace("TOKEN", TOKEN))["unseen"] == ""
