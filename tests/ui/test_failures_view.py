"""Tests of failures on the UI page, in a browser: in the first view, and in the view of an object."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from random import Random
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from ctrlmgr.api.object import Object
from ctrlmgr.eventlog import Author, EventType, Failure, Proposal, open_log
from ctrlmgr.testing import FakeClock
from ctrlmgr.workqueue import WorkQueue
from tests.ui.browser.page_helpers import go
from tests.ui.conftest import NewTab
from tests.ui.demo import START
from tests.ui.site import PageServer, page

SECOND = 1_000_000
SITE = "example.com/v1"
WHO = Author("alice", "kubectl")


def made(api_version: str, kind: str, name: str, owner: str = "", **fields: Any) -> Object:
    metadata: dict[str, Any] = {"name": name, "namespace": "shop", "uid": f"uid-{name}"}
    if owner:
        metadata["ownerReferences"] = [
            {"apiVersion": "v1", "kind": "Any", "name": owner, "uid": f"uid-{owner}", "controller": True}
        ]
    return Object.from_dict({"apiVersion": api_version, "kind": kind, "metadata": metadata, **fields})


def about(name: str, reason: str, message: str) -> Object:
    subject = {"kind": "Website", "name": name, "namespace": "shop"}
    more: dict[str, Any] = {
        "involvedObject": subject,
        "reason": reason,
        "message": message,
        "type": "Warning",
        "count": 3,
    }
    return made("v1", "Event", f"{name}.1", **more, lastTimestamp="2026-01-02T08:00:05Z")


CONDITIONS = [{"type": "Ready", "status": "False", "reason": "NoTemplate", "message": "there is no template"}]
WAITS = {"containerStatuses": [{"name": "c", "ready": False, "state": {"waiting": {"reason": "ImagePullBackOff"}}}]}
OBJECTS = [
    made(SITE, "Website", "corner", status={"conditions": CONDITIONS}),
    made("apps/v1", "Deployment", "web", "corner"),
    made("apps/v1", "ReplicaSet", "web-1", "web"),
    made("v1", "Pod", "web-1-a", "web-1", spec={"containers": [{"name": "c"}]}, status={"phase": "Pending", **WAITS}),
    made("v1", "Pod", "apart", spec={"containers": [{"name": "c"}]}),
    about("corner", "ReconcileFailed", "KeyError: 'template'"),
    about("other", "Elsewhere", "nothing of corner"),
]


def failing(**more: Any) -> Failure:
    fields: dict[str, Any] = {
        "controller": "website-controller",
        "key": "shop/corner",
        "since": START,
        "last_at": START + 5 * SECOND,
        "attempts": 26,
        "kind": "Website",
        "error": "KeyError: 'template'",
        "traceback": "Traceback (most recent call last):\n  website.py:12",
        "next_retry_at": START + 60 * SECOND,
    }
    return Failure(**{**fields, **more})


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PageServer]:
    """The UI page for the log of a website whose reconcile is failing, and of a website whose
    reconcile failed before.
    """
    url = f"sqlite:///{tmp_path_factory.mktemp('failing')}/log.db"
    clock = FakeClock(START + 10 * SECOND)
    log = open_log(url, clock=clock, random=Random(1), migrate=True)
    log.append([Proposal(EventType.ADDED, each, None) for each in OBJECTS], author=WHO)
    clock.step(100_000)  # a long pause
    log.append([Proposal(EventType.ADDED, made("v1", "ConfigMap", "late"), None)], author=WHO)
    log.record_failure(failing())
    log.record_failure(failing(key="shop/past", attempts=3, ended_at=START + 20 * SECOND, next_retry_at=None))
    log.close()
    with page(url) as running:
        yield running


@pytest.fixture
def opened(new_tab: NewTab, shop: PageServer) -> Page:
    made = new_tab()
    made.goto(shop.link)
    made.locator("main[data-at]").wait_for()
    return made


def test_failures_are_the_first_section_of_the_page(opened: Page) -> None:
    card = opened.locator(".failure")
    expect(card).to_have_count(1)
    expect(card.locator("h2")).to_have_text("Website shop/corner")
    expect(card.locator(".error")).to_have_text("KeyError: 'template'")
    expect(card).to_contain_text("attempts26since2026-01-02 08:00:00")
    expect(card).to_contain_text("next retry2026-01-02 08:01:00")
    expect(card.locator("pre")).to_be_hidden()
    card.locator("summary").click()
    expect(card.locator("pre")).to_contain_text("website.py:12")
    expect(opened.locator("nav a").first).to_have_text("Failures1")
    go(opened, "#/failures?at=1")
    expect(opened.locator(".failure")).to_have_count(2)  # both failed at that time
    expect(opened.locator(".failure", has_text="shop/past")).to_contain_text("it succeeded")
    card.locator("h2 a").first.click()
    expect(opened.locator("h1")).to_have_text("shop/corner")


def test_a_page_without_failures_begins_with_the_timeline(tab: Page) -> None:
    expect(tab.locator("nav a[aria-current]")).to_have_text("Timeline")
    tab.keyboard.press("f")
    expect(tab.locator(".failures")).to_contain_text("No reconcile fails")


def test_an_object_page_shows_error_conditions_events_and_relatives(opened: Page) -> None:
    go(opened, "#/object?resource=websites.example.com&namespace=shop&name=corner")
    around = opened.locator(".surroundings")
    expect(around.locator(".failure .error")).to_have_text("KeyError: 'template'")
    expect(around.locator("section", has_text="Conditions").locator("li")).to_have_text(
        "Ready False NoTemplate: there is no template"
    )
    expect(around.locator("section", has_text="Conditions").locator(".bad")).to_have_text("False")
    events = around.locator("section", has_text="Events").locator("li")
    expect(events).to_have_count(1)
    expect(events).to_contain_text("ReconcileFailed KeyError: 'template' 2026-01-02 08:00:05 × 3")
    names = around.locator(".tree .name")
    expect(names).to_have_text(["shop/corner", "shop/web", "shop/web-1", "shop/web-1-a"])
    expect(around.locator(".tree .bad")).to_have_text(" ImagePullBackOff")
    names.last.click()
    expect(opened.locator("h1")).to_have_text("shop/web-1-a")
    expect(names).to_have_text(["shop/corner", "shop/web", "shop/web-1", "shop/web-1-a"])  # from the topmost owner
    go(opened, "#/object?resource=pods&namespace=shop&name=apart")
    expect(opened.locator("h1")).to_have_text("shop/apart")
    expect(opened.locator(".tree")).to_have_count(0)


def test_the_log_of_a_pod_is_loaded_on_request(opened: Page) -> None:
    opened.route("**/api/v1/namespaces/shop/pods/web-1-a/log?*", lambda route: route.fulfill(body="started\nlistens"))
    go(opened, "#/object?resource=pods&namespace=shop&name=web-1-a")
    opened.get_by_role("button", name="the last 200 lines").click()
    expect(opened.locator("section", has_text="Logs").locator("pre")).to_have_text("started\nlistens")


def test_custom_kinds_and_failures_are_listed_first_and_errors_have_one_colour(opened: Page) -> None:
    opened.set_viewport_size({"width": 1400, "height": 900})
    go(opened, "#/objects?resource=pods")
    first = opened.locator(".kinds a").first
    expect(first).to_have_text("websitesexample.com11")
    expect(first.locator(".failing")).to_have_text("1")
    expect(opened.locator("td.bad", has_text="ImagePullBackOff")).to_have_count(1)
    # One evaluation reads both edges, because the page may replace the elements between two.
    edges = opened.evaluate(
        "() => ['.kinds', '.kinds a'].map(each => document.querySelector(each).getBoundingClientRect().right)"
    )
    assert edges[1] <= edges[0]


def test_queues_with_failing_keys_are_listed_first(opened: Page) -> None:
    queues = [WorkQueue[str](name, clock=FakeClock()) for name in ("a-controller", "website-controller")]
    go(opened, "#/queues")
    expect(opened.locator(".tile h2").first).to_have_text("website-controller")
    expect(opened.locator(".tile").first).to_contain_text("1 failing")
    assert queues


def test_a_long_pause_is_folded_in_the_timeline(opened: Page) -> None:
    go(opened, "#/timeline")
    fold = opened.locator(".fold")
    expect(fold).to_have_count(1)
    expect(fold).to_have_attribute("title", "no events for 27 h 46 min")
    go(opened, "#/timeline?axis=revision")
    expect(fold).to_have_count(0)


def test_times_do_not_overlap_on_a_phone(opened: Page) -> None:
    opened.set_viewport_size({"width": 390, "height": 844})
    opened.reload()
    opened.locator(".ticks span").first.wait_for()
    boxes = [each.bounding_box() for each in opened.locator(".ticks > span").all()]
    ends = [(box["x"], box["x"] + box["width"]) for box in boxes if box]
    assert all(end <= start for (_, end), (start, _) in pairwise(ends))
    assert ends[0][0] >= 0
    assert ends[-1][1] <= 390
