// The timeline: what happened up to the moment that is looked at, and what the last of it changed.

import { h, fill, headings } from "./dom.js";
import { ask } from "./api.js";
import { change as travel, link } from "./state.js";
import { actor, badge, content, dot, objectLink, reconcile, revisionLink, time } from "./changes.js";
import { known } from "./colours.js";
import { filters } from "./filters.js";
import { count } from "./format.js";
import { unseen } from "./unseen.js";

const LISTED = 60;

export function timeline() {
  const body = h("tbody");
  const detail = h("aside", { class: "card detail", "aria-live": "polite" });
  const table = h(
    "table",
    { class: "events" },
    headings(["Revision", "Time", "Change", "Object", "Author", "Reconcile of"], new Set(["Revision"])),
    body,
  );
  const foot = h("p", { class: "foot quiet", role: "status" });
  const card = h("div", { class: "card scroll" }, table, foot);
  const chosen = filters();
  const node = h("div", { class: "two wide-left" });
  let shown = "";
  let by = "actor";
  let redraw = () => {};
  let list = { events: [], looked: 0, hidden: 0 };
  /** What one has looked back to, whatever was under way meanwhile. */
  let further = { key: "", list };

  async function update(params, moment) {
    if (!moment.head) {
      fill(
        node,
        h(
          "div",
          { class: "empty" },
          h("h2", null, "No events yet"),
          h("p", null, "The log is empty. New events appear here."),
        ),
      );
      return;
    }
    const query = { at: moment.at, limit: LISTED, ...chosen.of(params) };
    by = params.by;
    const key = JSON.stringify([query, by]);
    if (key === shown) return;
    const found = await ask("events", query);
    if (!found.events.length && moment.unseen) {
      shown = key;
      fill(node, unseen(moment));
      return;
    }
    const focus = moment.live ? (found.events[0]?.revision ?? moment.at) : moment.at;
    const change = await about(focus);
    chosen.show(params, moment, found.events);
    shown = key;
    list = further.key === key ? further.list : found;
    show(query, focus);
    fill(detail, typeof change === "string" ? h("p", { class: "quiet" }, change) : described(change));
    if (card.parentNode?.parentNode !== node) fill(node, h("div", null, chosen.node, card), detail);
  }

  function show(query, focus) {
    const colours = known();
    redraw = () => known() !== colours && show(query, focus);
    fill(
      body,
      list.events.map((event) => row(event, focus, by)),
    );
    const nothing = !list.events.length && "No events match these filters up to this moment. ";
    fill(
      foot,
      list.looked > 1 ? nothing && `No events match since revision ${count(list.looked)}. ` : nothing,
      list.looked > 1 && h("button", { class: "more", onclick: () => void back(query, focus) }, "load older events"),
      list.hidden > 0 && [
        ` ${count(list.hidden)} changes of leases and Events are hidden. `,
        h("button", { onclick: () => travel({ quiet: 1 }) }, "show them"),
      ],
    );
  }

  async function back(query, focus) {
    const [key, from] = [JSON.stringify([query, by]), list];
    travel({ at: query.at }, { replace: true }); // who looks back stands still
    const more = await ask("events", { ...query, at: from.looked - 1 });
    const events = [...from.events, ...more.events];
    further = { key, list: { events, looked: more.looked, hidden: from.hidden + more.hidden } };
    if (key !== shown) return; // on the way here, or somewhere else by now
    list = further.list;
    show(query, focus);
  }

  return { node, update, filter: chosen.focus, drawn: () => redraw() };
}

async function about(revision) {
  try {
    return await ask("change", { revision });
  } catch (error) {
    if (error.code === 404) return "This event has been compacted.";
    if (error.code === 403 && !error.needsToken) return "You have no access to this object.";
    throw error;
  }
}

function row(event, focus, by) {
  const go = (clicked) => {
    if (!clicked.target.closest("a")) travel({ at: event.revision });
  };
  return h(
    "tr",
    { class: event.revision === focus ? "now" : "", onclick: go },
    h("td", { class: "number" }, revisionLink(event.revision)),
    h("td", { class: "quiet" }, time(event.recordedAt)),
    h("td", null, badge(event.type)),
    h("td", null, by === "resource" && dot(by, event.resource), objectLink(event)),
    h("td", null, actor(event, by === "actor")),
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
        causes ? "Causes and effects" : "Details",
      ),
    ),
  ];
}
