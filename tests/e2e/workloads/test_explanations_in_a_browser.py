"""Tests in a browser: from a pod to the edit that caused the pod, and the rollout on the page of
the pod's Deployment.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect, sync_playwright

from tests.e2e.kubectl import Kubectl
from tests.e2e.serving import Server, until
from tests.e2e.workloads.test_explanations import command_output
from tests.e2e.workloads.test_rollouts import APP, images
from tests.ui.browser.chromium import launched
from tests.ui.browser.page_helpers import at, go

PATIENCE = 30_000


@pytest.fixture
def tab(server: Server) -> Iterator[Page]:
    with sync_playwright() as playwright, launched(playwright) as chromium:
        context = chromium.new_context(ignore_https_errors=True, viewport={"width": 1440, "height": 900})
        context.set_default_timeout(PATIENCE)
        expect.set_options(timeout=PATIENCE)
        made = context.new_page()
        made.goto(f"{server.url}/ui/#token={server.token}")
        made.locator("main[data-at]").wait_for()
        yield made


def test_the_page_shows_the_causing_edit_and_the_rollout(server: Server, kubectl: Kubectl, tab: Page) -> None:
    kubectl(f"create deployment web --image={APP}:1 --replicas=2")
    kubectl("rollout status deployment web --timeout=20s")
    kubectl(f"set image deployment/web app={APP}:2")
    kubectl("rollout status deployment web --timeout=20s")
    until(lambda: images(kubectl) == ["2", "2"])
    name = kubectl.get("pods")["items"][0]["metadata"]["name"]
    namespace = kubectl.namespace
    rollout = json.loads(command_output(server, "rollout", "deployment", "web", "-n", namespace, "-o", "json"))
    pods = json.loads(command_output(server, "history", f"pod/{name}", "-n", namespace, "-o", "json"))

    go(tab, f"#/change?at={pods[0]['revision']}")
    at(tab, pods[0]["revision"])
    expect(tab.locator("main")).to_contain_text(name)
    for controller in ("replicaset-controller", "deployment-controller"):
        expect(tab.locator(".graph .run", has_text=controller).first).to_be_visible()
    edit = tab.locator(f'.graph a.event[data-node="e{rollout["revision"]}"]')
    expect(edit).to_have_attribute("aria-label", re.compile("deployments.apps .*/web"))
    edit.focus()  # it may be outside the visible area
    tab.keyboard.press("Enter")
    at(tab, rollout["revision"])
    expect(tab.locator("main")).to_contain_text(f"{APP}:2")

    last = rollout["steps"][-1]["revision"]
    go(tab, f"#/object?at={last}&resource=deployments.apps&namespace={namespace}&name=web")
    card = tab.locator(".rollout-card")
    expect(card.locator(".began")).to_contain_text("since")
    expect(card.locator(".diff")).to_contain_text(f"{APP}:2")
    card.get_by_role("button", name="more steps").click()
    expect(card.locator(".step")).to_have_count(len(rollout["steps"]))
    expect(card.locator(".step", has_text="created (new)")).to_have_count(2)
    expect(card.locator(".waited", has_text="unavailable").first).to_be_visible()
    card.locator(".step a.rev").first.click()
    at(tab, rollout["steps"][0]["revision"])

    go(tab, f"#/object?at={last}&resource=pods&namespace={namespace}&name={name}")
    expect(tab.locator("h1")).to_contain_text(name)
    expect(card).to_be_hidden()
