"""Makes the screenshots of the UI page for the documentation: `python -m tests.ui.screenshots`.

The page shows the demo's log at the time of the demo. The preferred fonts of the page are Inter and JetBrains Mono
(Debian: fonts-inter, fonts-jetbrains-mono); if they are not installed, the screenshots have other fonts.
"""

from __future__ import annotations

import re
import tempfile
from pathlib import Path
from random import Random
from typing import NamedTuple

from playwright.sync_api import Page, sync_playwright

from ctrlmgr.clock import parse_time
from ctrlmgr.inspection.database import Database, open_database
from ctrlmgr.server import Check
from ctrlmgr.testing import FakeClock
from ctrlmgr.workqueue import WorkQueue
from tests.ui import story
from tests.ui.browser.chromium import launched
from tests.ui.browser.page_helpers import at, go, revision_of
from tests.ui.site import READY, page

FOLDER = Path(__file__).parents[2] / "docs" / "images"
LARGEST = 300_000
"""The maximum size of a screenshot in bytes."""

CONTROLLERS = (
    "endpoints-controller",
    "endpoint-slice-controller",
    "garbage-collector-controller",
    "namespace-controller",
    "root-ca-certificate-publisher-controller",
    "ttl-after-finished-controller",
)
LOOKED = 45
"""Seconds of work in the queues before the screenshot of the queues."""


class Screenshot(NamedTuple):
    """A screenshot: the page's address, and how the page is shown."""

    name: str
    address: str
    seen: str
    """A CSS selector of an element that must exist before the screenshot is taken."""
    dark: bool = False
    height: int = 850


def pictures(database: Database) -> list[Screenshot]:
    rollout = revision_of(database, "resource = 'deployments.apps' AND name = 'checkout' AND time < '2026-01-02T10:38'")
    failed = revision_of(database, "controller = 'node-lifecycle-controller' AND time < '2026-01-02T09:46'")
    scaled = revision_of(database, "resource = 'replicasets.apps' AND name LIKE 'gateway%' AND type = 'ADDED'")
    served = revision_of(database, "resource = 'endpoints' AND name = 'web' AND time < '2026-01-02T10:00'")
    web = f"at={served}&name=web&namespace=shop&resource=endpoints"
    return [
        Screenshot("timeline", f"#/timeline?at={rollout}", ".detail .diff"),
        Screenshot("timeline-dark", f"#/timeline?at={rollout}&by=resource", ".detail .diff", dark=True),
        Screenshot("objects", f"#/objects?at={failed}&resource=pods", "tr.fresh"),
        Screenshot("object", f"#/object?{web}", ".history .diff"),
        Screenshot("why", f"#/change?at={scaled}", ".graph .box", height=760),
        Screenshot("why-dark", f"#/change?at={scaled}", ".graph .box", dark=True, height=760),
        Screenshot("leaders", "#/leaders", ".band", height=600),
        Screenshot("health", "#/health", ".verdict", height=560),
        Screenshot("queues", "#/queues", ".tile", dark=True, height=560),
    ]


class Activity:
    """Simulated work for the queues; the demo's clock determines how long the work takes."""

    def __init__(self, clock: FakeClock) -> None:
        self._clock = clock
        self._random = Random(4)
        self._queues = [WorkQueue[int](name, clock=clock) for name in CONTROLLERS]

    def second(self) -> None:
        """Simulate the queues' work for one second, and advance the clock by this second."""
        for place, queue in enumerate(self._queues):
            burst = 9 if self._random.random() < 0.12 else 2
            for item in range(self._random.randint(0, burst) if place < 4 else self._random.randint(0, 1)):
                queue.add(item, (1,))
            if place == 2 and self._random.random() < 0.2:
                queue.add_rate_limited(99)
        for queue in self._queues:
            for _ in range(self._random.randint(0, 5)):
                if (delivery := queue.get(0)) is not None:
                    self._clock.step(0.001 + self._random.random() / 120)
                    queue.done(delivery.item)
        self._clock.step(0.7)


def take(tab: Page, picture: Screenshot) -> None:
    tab.set_viewport_size({"width": 1360, "height": picture.height})
    tab.emulate_media(color_scheme="dark" if picture.dark else "light", reduced_motion="reduce")
    tab.mouse.move(0, 0)
    go(tab, picture.address)
    if moment := re.search(r"at=(\d+)", picture.address):
        at(tab, int(moment[1]))
    tab.locator(picture.seen).first.wait_for()
    tab.wait_for_load_state("networkidle")


def watch(tab: Page, activity: Activity) -> None:
    """Let the page poll the queues for a while, in the page's own virtual time."""
    tab.clock.pause_at(tab.evaluate("Date.now()") / 1000 + 5)
    for _ in range(LOOKED):
        activity.second()
        with tab.expect_response("**/api/queues"):
            tab.clock.run_for(1000)


def save(tab: Page, name: str) -> None:
    taken = tab.screenshot()
    assert len(taken) < LARGEST, f"{name} has {len(taken)} bytes"
    (FOLDER / f"{name}.png").write_bytes(taken)


def main() -> None:
    FOLDER.mkdir(exist_ok=True)
    clock = FakeClock(parse_time("2026-01-02T11:41:20Z"))
    checks = [*READY, *(Check(f"controller/{name}", lambda: None) for name in CONTROLLERS)]
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright, launched(playwright) as browser:
        url = story.write(f"sqlite:///{folder}/log.db")
        with page(url, told=clock, checks=checks) as served, open_database(url) as database:
            activity = Activity(clock)
            clock.step(7432)
            tab = browser.new_page(timezone_id="UTC")
            tab.clock.install()
            tab.goto(served.link)
            tab.locator("main[data-at]").wait_for()
            for picture in pictures(database):
                take(tab, picture)
                if picture.name == "queues":
                    watch(tab, activity)
                save(tab, picture.name)


if __name__ == "__main__":
    main()
