"""Tests of objects on the UI page, in a browser: lists with Kubernetes' columns, and an object with the author of each
line.
"""

from __future__ import annotations

import re

import yaml
from playwright.sync_api import Page, expect

from ctrlmgr.inspection.database import Database
from tests.ui.browser.page_helpers import at, go, head, revision_of


def running_pods(database: Database, revision: int) -> int:
    rows = database.query("SELECT count(*) FROM objects_at(:at) AS o WHERE o.resource = 'pods'", {"at": revision}).rows
    return int(rows[0][0])


def test_pods_are_listed_at_two_revisions(tab: Page, database: Database) -> None:
    go(tab, "#/objects?resource=pods")
    rows = tab.locator("table.objects tbody tr:not(.gone)")
    expect(rows).to_have_count(running_pods(database, head(database)))
    expect(tab.locator("table.objects thead")).to_have_text("NamespaceNameReadyStatusRestartsAgeRevision")
    first = revision_of(database, "resource = 'pods' AND type = 'ADDED' AND revision < 30")
    go(tab, f"#/objects?at={first}&resource=pods")
    at(tab, first)
    expect(rows).to_have_count(running_pods(database, first))
    expect(rows.first).to_contain_text("Pending")
    assert running_pods(database, first) < running_pods(database, head(database))


def test_recent_changes_are_marked_and_deleted_objects_still_listed(tab: Page, database: Database) -> None:
    deleted = revision_of(database, "resource = 'pods' AND type = 'DELETED'")
    name = database.query("SELECT name FROM timeline WHERE revision = :at", {"at": deleted}).rows[0][0]
    go(tab, f"#/objects?at={deleted}&resource=pods&namespace=shop")
    at(tab, deleted)
    expect(tab.locator("tr.gone", has_text=name)).to_contain_text("deleted")
    marked = tab.locator("tr.fresh")
    assert 0 < marked.count() < tab.locator("table.objects tbody tr").count()
    expect(tab.get_by_role("status")).to_contain_text(f"{marked.count()} changed recently")


def test_the_list_has_namespaces_a_filter_and_wide_columns(tab: Page) -> None:
    go(tab, "#/objects?resource=pods")
    tab.get_by_label("namespace").select_option("payments")
    tab.wait_for_url(re.compile("namespace=payments"))
    expect(tab.locator("table.objects tbody")).not_to_contain_text("web-")
    expect(tab.locator("table.objects thead")).not_to_contain_text("Namespace")
    tab.keyboard.press("/")
    expect(tab.get_by_label("filter")).to_be_focused()
    tab.keyboard.type("ledger")
    expect(tab.locator("table.objects tbody tr:not(.gone)")).to_have_count(2)
    tab.get_by_label("wide").check()
    expect(tab.locator("table.objects thead")).to_contain_text("Node")
    tab.get_by_label("filter").fill("nobody")
    expect(tab.locator(".empty")).to_contain_text("No name contains “nobody”")
    tab.reload()
    expect(tab.get_by_label("filter")).to_have_value("nobody")
    expect(tab.get_by_label("wide")).to_be_checked()


def test_kinds_are_counted_and_link_to_their_objects(tab: Page) -> None:
    go(tab, "#/objects")
    tab.locator(".kinds a", has_text="services").click()
    tab.wait_for_url(re.compile("resource=services"))
    expect(tab.locator("table.objects thead")).to_contain_text("Cluster-IP", ignore_case=True)
    tab.locator("table.objects a", has_text="ledger").click()
    expect(tab.locator("h1")).to_have_text("payments/ledger")


def test_the_object_page_shows_the_author_of_each_line(tab: Page, database: Database) -> None:
    failed = revision_of(database, "resource = 'nodes' AND actor = 'system:controller:node-lifecycle-controller'")
    go(tab, f"#/object?at={failed}&name=node-b&resource=nodes")
    at(tab, failed)
    line = tab.locator(".yaml .line", has_text="reason: NodeStatusUnknown")
    expect(line.locator(".gutter")).to_contain_text(f"{failed}")
    expect(line.locator(".gutter")).to_contain_text("node-lifecycle-controller")
    expect(line).to_have_class(re.compile("newest"))
    expect(tab.locator(".history > li.now .diff")).to_contain_text("status.conditions[type=Ready].status")
    expect(tab.locator(".history > li.now del").first).to_have_text("True")
    go(tab, f"#/object?at={failed - 1}&name=node-b&resource=nodes")
    at(tab, failed - 1)
    expect(tab.locator(".yaml")).to_contain_text("reason: KubeletReady")
    expect(tab.locator(".yaml")).not_to_contain_text("NodeStatusUnknown")


def test_the_yaml_parses_to_the_object(tab: Page, database: Database) -> None:
    go(tab, "#/object?blame=off&name=web&namespace=shop&resource=endpoints")
    tab.locator(".yaml .line").first.wait_for()
    assert tab.locator(".gutter").count() == 0
    text = tab.evaluate(
        """() => [...document.querySelectorAll(".yaml code")]
            .map((line) => " ".repeat(parseInt(line.style.paddingLeft)) + line.textContent).join("\\n")"""
    )
    body = database.query("SELECT body FROM objects WHERE resource = 'endpoints' AND name = 'web'").rows[0][0]
    assert yaml.safe_load(text) == yaml.safe_load(body)


def test_revisions_without_the_object_are_marked(tab: Page, database: Database) -> None:
    go(tab, "#/object?at=2&name=web&namespace=shop&resource=endpoints")
    expect(tab.locator(".empty")).to_contain_text("At revision 2 it had not been created")
    deleted = revision_of(database, "resource = 'pods' AND type = 'DELETED'")
    namespace, name = database.query("SELECT namespace, name FROM timeline WHERE revision = :at", {"at": deleted}).rows[
        0
    ]
    go(tab, f"#/object?name={name}&namespace={namespace}&resource=pods")
    expect(tab.locator(".heading .badge")).to_have_text("deleted")
    expect(tab.locator(".history > li").first).to_contain_text("deleted")


def test_hostile_objects_are_shown_as_text(tab: Page) -> None:
    go(tab, "#/object?name=runbook&namespace=shop&resource=configmaps")
    expect(tab.locator(".yaml")).to_contain_text("team: \"<script>document.title = 'taken over'</script>\"")
    go(tab, "#/timeline?at=10")
    at(tab, 10)
    expect(tab.locator(".events")).to_contain_text("<script>")
    go(tab, "#/change?at=9")
    at(tab, 9)
    assert "taken over" not in tab.title()
    assert tab.locator("body script, main img").count() == 0


def test_values_of_secrets_are_not_shown(tab: Page) -> None:
    go(tab, "#/object?name=ledger-db&namespace=payments&resource=secrets")
    expect(tab.locator(".yaml .line", has_text="password")).to_contain_text("(hidden)")
    assert "aHVudGVyMg" not in tab.content()
