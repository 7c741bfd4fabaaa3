// The timeline: what happened up to the moment that is looked at, and what the last of it changed.

import { h, fill, headings } from "./dom.js";
import { ask } from "./api.js";
import { change as travel, link } from "./state.js";
import { actor, badge, content, objectLink, reconcile, revisionLink, time } from "./changes.js";
import { count } from "./format.js";
import { unseen } from "./unseen.js";

const LISTED = 60;

export function timeline() {
  const body = h("tbody");
  const detail = h("aside", { class: "card detail", "aria-live": "polite" });
  const table = h(
    "table",
    { class: "events" },
    headings(["Revision", "Time", "", "Object", "By", "Reconcile of"], new Set(["Revision"])),
    body,
  );
  const card = h("div", { class: "card scroll" }, table);
  const node = h("div", { class: "two wide-left" });
  let shown = "";

  async function update(params, moment) {
    if (!moment.head) {
      fill(
        node,
        h(
          "div",
          { class: "empty" },
          h("h2", null, "Nothing has happened yet"),
          h("p", null, "The log is empty. What is written from now on appears here."),
        ),
      );
      return;
    }
    const key = `${moment.at}`;
    if (key === shown) return;
    const [events, change] = await Promise.all([ask("events", { at: moment.at, limit: LISTED }), about(moment.at)]);
    shown = key;
    if (!events.events.length && moment.unseen) {
      fill(node, unseen(moment));
      return;
    }
    fill(
      body,
      events.events.map((event) => row(event, moment)),
    );
    fill(detail, typeof change === "string" ? h("p", { class: "quiet" }, change) : described(change));
    if (card.parentNode !== node) fill(node, card, detail);
  }

  return { node, update };
}

async function about(revision) {
  try {
    return await ask("change", { revision });
  } catch (error) {
    if (error.code === 404) return "This event has been compacted.";
    if (error.code === 403 && !error.needsToken) return "What was changed here is not for you to see.";
    throw error;
  }
}

function row(event, moment) {
  const go = (clicked) => {
    if (!clicked.target.closest("a")) travel({ at: event.revision });
  };
  return h(
    "tr",
    { class: event.revision === moment.at ? "now" : "", onclick: go },
    h("td", { class: "number" }, revisionLink(event.revision)),
    h("td", { class: "quiet" }, time(event.recordedAt)),
    h("td", null, badge(event.type)),
    h("td", null, objectLink(event)),
    h("td", null, actor(event)),
    h("td", { class: "quiet" }, event.key ?? ""),
  );
}

function described(change) {
  const causes = change.graph.nodes.length - 1;
  return [
    h("header", null, h("h2", null, `Revision ${count(change.revision)}`), badge(change.type)),
    h("p", null, objectLink(change)),
    h("p", { class: "meta" }, actor(change), " ", time(change.recordedAt)),
    h("p", { class: "meta quiet" }, reconcile(change)),
    content(change),
    h(
      "p",
      null,
      h(
        "a",
        { class: "button", href: link("change", { at: change.revision }) },
        causes ? "Why, and what came of it" : "Look at it alone",
      ),
    ),
  ];
}
