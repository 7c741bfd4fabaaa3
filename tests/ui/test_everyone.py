"""Tests of the UI page's accessibility: names of elements, contrast, and the layout on a phone."""

from __future__ import annotations

import re
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from ctrlmgr.inspection.database import Database
from tests.ui.browser.page_helpers import go, revision_of
from tests.ui.conftest import NewTab
from tests.ui.site import PageServer

VIEWS = ("failures", "timeline", "objects", "queues", "leaders", "health", "requests", "cluster")

FAINT = """() => {
  const parse = (text) => {
    const [r, g, b, a = 1] = text.match(/[\\d.]+/g).map(Number);
    const whole = text.startsWith("color(") ? 255 : 1; // a mixed colour is told in parts of one
    return { r: r * whole, g: g * whole, b: b * whole, a };
  };
  const over = (top, below) => ({
    r: top.r * top.a + below.r * (1 - top.a),
    g: top.g * top.a + below.g * (1 - top.a),
    b: top.b * top.a + below.b * (1 - top.a),
    a: 1,
  });
  const light = ({ r, g, b }) => {
    const [x, y, z] = [r, g, b].map((each) => {
      const part = each / 255;
      return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * x + 0.7152 * y + 0.0722 * z;
  };
  const behind = (element) => {
    const layers = [];
    for (let each = element; each; each = each.parentElement)
      layers.push(parse(getComputedStyle(each).backgroundColor));
    const dark = matchMedia("(prefers-color-scheme: dark)").matches;
    return layers.reverse().reduce((below, top) => over(top, below), parse(dark ? "rgb(0,0,0)" : "rgb(255,255,255)"));
  };
  const found = new Map();
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const element = walker.currentNode.parentElement;
    if (!walker.currentNode.data.trim() || !element.checkVisibility({ visibilityProperty: true })) continue;
    if (element.closest("noscript, script, datalist, option, [disabled]")) continue;
    const style = getComputedStyle(element);
    const below = behind(element);
    const ink = over(parse(element.ownerSVGElement ? style.fill : style.color), below);
    const [high, low] = [light(ink), light(below)].sort((one, other) => other - one);
    const ratio = (high + 0.05) / (low + 0.05);
    const name = `${element.tagName}.${element.className?.baseVal ?? element.className}`;
    if (ratio < 4.5) found.set(name, ratio.toFixed(2));
  }
  return [...found].map(([name, ratio]) => `${name} ${ratio}`);
}"""

NAMELESS = """() => [...document.querySelectorAll("button, input, select, a[href], [role=slider], nav, svg[role=img]")]
  .filter((each) => each.checkVisibility({ visibilityProperty: true }))
  .filter((each) => !(each.textContent.trim() || each.getAttribute("aria-label") || each.title || each.labels?.length))
  .map((each) => each.outerHTML.slice(0, 120))"""


WIDE = """() => [...document.querySelectorAll("body *")]
  .filter((each) => each.getBoundingClientRect().right > 391 && !each.closest(".scroll"))
  .map((each) => `${each.tagName}.${each.className?.baseVal ?? each.className}`)
  .slice(0, 12)"""


def views(database: Database) -> dict[str, str]:
    """Return the URL of every view of the page."""
    pod = "resource=pods&namespace=shop"
    name = database.query("SELECT name FROM timeline WHERE resource = 'pods' AND namespace = 'shop' LIMIT 1").rows[0][0]
    revision = revision_of(database, f"resource = 'pods' AND name = '{name}' AND type = 'MODIFIED'")
    return {
        **{each: f"#/{each}" for each in VIEWS},
        "object": f"#/object?{pod}&name={name}&at={revision}",
        "change": f"#/change?at={revision}",
    }


def open_view(tab: Page, name: str, address: str) -> None:
    """Open a view of the page, and wait until the view is shown."""
    go(tab, address)
    expect(tab).to_have_title(re.compile(f"· {name}"))
    tab.wait_for_load_state("networkidle")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_all_text_is_readable_and_every_control_has_a_name(
    new_tab: NewTab, served: PageServer, database: Database, scheme: str
) -> None:
    tab = new_tab(color_scheme=scheme)
    tab.goto(served.link)
    problems: dict[str, Any] = {}
    for name, address in views(database).items():
        open_view(tab, name, address)
        expect(tab.locator("h1")).to_have_count(1)
        if found := [*tab.evaluate(FAINT), *tab.evaluate(NAMELESS)]:
            problems[name] = found
    assert not problems


def test_a_phone_shows_everything_within_the_screen(new_tab: NewTab, served: PageServer, database: Database) -> None:
    tab = new_tab()
    tab.set_viewport_size({"width": 390, "height": 844})
    tab.goto(served.link)
    wide: dict[str, list[Any]] = {}
    for name, address in views(database).items():
        open_view(tab, name, address)
        width = tab.evaluate("document.scrollingElement.scrollWidth")
        if width > 390:
            wide[name] = [width, *tab.evaluate(WIDE)]
    assert not wide


def test_only_live_regions_are_announced(tab: Page, database: Database) -> None:
    button = tab.locator("button.live")
    green = button.evaluate("each => getComputedStyle(each).color")
    tab.route("**/ui/api/**", lambda route: route.abort())
    expect(tab.locator(".banner")).to_be_visible()
    expect(button).not_to_have_css("color", green)
    tab.unroute("**/ui/api/**")
    expect(tab.locator(".banner")).to_be_hidden()
    expect(button).to_have_css("color", green)
