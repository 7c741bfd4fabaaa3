"""Tests that the UI page shows the changes that admission makes to objects, by webhooks and by built-in plugins."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest
from playwright.sync_api import expect

from ctrlmgr.eventlog.opening import open_log
from ctrlmgr.inspection.database import open_database
from ctrlmgr.testing import FakeClock
from tests.admission.test_why import labels_it
from tests.admission.webhooks.hooked import RULES
from tests.engine.stage import Stage
from tests.ui.browser.page_helpers import go, revision_of
from tests.ui.conftest import NewTab
from tests.ui.site import PageServer, page

HOOKS = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return a log with a node that an admission plugin has changed, and a ConfigMap that a webhook has changed."""
    made = f"sqlite:///{Path(tmp_path_factory.mktemp('admission'))}/log.db"
    log = open_log(made, clock=FakeClock(), random=Random(1), migrate=True)
    stage = Stage(log=log, caller=labels_it)
    stage.namespace("shop")
    assert stage.send("POST", "/api/v1/nodes", {"metadata": {"name": "n", "labels": {"a": "b"}}}).code == 201
    hook = {
        "name": "label.example.com",
        "clientConfig": {"url": "https://hooks.invalid/"},
        "rules": RULES,
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
    }
    assert stage.send("POST", HOOKS, {"metadata": {"name": "labels"}, "webhooks": [hook]}).code == 201
    assert stage.send("POST", "/api/v1/namespaces/shop/configmaps", {"metadata": {"name": "plain"}}).code == 201
    log.flush()
    log.close()
    return made


@pytest.fixture(scope="module")
def shown(url: str) -> Iterator[PageServer]:
    with page(url) as running:
        yield running


@pytest.mark.parametrize(
    ("where", "words"),
    [
        ("resource = 'configmaps'", "changed during admission by webhook label.example.com of labels"),
        ("resource = 'nodes'", "changed during admission by plugin TaintNodesByCondition"),
    ],
)
def test_the_change_and_its_row_name_the_mutating_plugin(
    new_tab: NewTab, shown: PageServer, url: str, where: str, words: str
) -> None:
    with open_database(url) as database:
        revision = revision_of(database, where)
    tab = new_tab()
    tab.goto(shown.link)
    go(tab, f"#/timeline?at={revision}")
    expect(tab.locator(".detail")).to_contain_text(words)
    go(tab, f"#/change?at={revision}")
    expect(tab.locator(".graph")).to_contain_text(words.partition(" by ")[2].partition(" of ")[0].partition(" ")[2])
