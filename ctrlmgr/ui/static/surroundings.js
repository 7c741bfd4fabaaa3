// What is around an object: why its reconciles fail, its conditions, its Events, and who owns it and what it owns.

import { h, fill } from "./dom.js";
import { ask, text } from "./api.js";
import { objectLink } from "./changes.js";
import { count } from "./format.js";
import { state } from "./trouble.js";
import { failure, open } from "./view_failures.js";

const LINES = 200;

export function surroundings() {
  const node = h("div", { class: "surroundings" });
  let shown = "";

  async function update(place, moment) {
    const found = await around(place, moment.at, moment.live);
    const key = JSON.stringify([place, found, moment.live]);
    if (key === shown) return;
    shown = key;
    const opened = open(node);
    fill(
      node,
      found.failures.map((each) => failure(each, opened, false)),
      h(
        "div",
        { class: "cards" },
        found.conditions.length > 0 && conditions(found.conditions),
        found.tree && tree(found.tree, place),
        found.events.length > 0 && events(found.events),
      ),
      place.resource === "pods" && moment.live && found.exists && logs(place),
    );
  }

  return { node, update };
}

/** What is around it; nothing if it did not exist. */
async function around(place, at, live) {
  try {
    return { exists: true, ...(await ask("around", { ...place, at: live ? null : at })) };
  } catch (error) {
    if (error.code !== 404 && error.code !== 410) throw error;
    return { exists: false, failures: [], conditions: [], events: [], tree: null };
  }
}

function card(title, ...children) {
  return h("section", { class: "card" }, h("h2", null, title), children);
}

function conditions(found) {
  const rows = found.map((each) =>
    h(
      "li",
      null,
      h("b", null, each.type),
      " ",
      h("span", { class: each.state }, each.status),
      h("span", { class: "quiet" }, each.reason && ` ${each.reason}`, each.message && `: ${each.message}`),
    ),
  );
  return card("Conditions", h("ul", { class: "rows" }, rows));
}

function events(found) {
  const rows = found.map((each) =>
    h(
      "li",
      null,
      h("span", { class: each.type === "Warning" ? "badge deleted" : "badge" }, each.reason || each.type),
      " ",
      each.message,
      h(
        "span",
        { class: "quiet" },
        ` ${each.at.slice(0, 19).replace("T", " ")}`,
        each.count > 1 && ` × ${count(each.count)}`,
      ),
    ),
  );
  return card("Events", h("ul", { class: "rows" }, rows));
}

function tree(root, place) {
  return card("Owners and children", h("ul", { class: "tree" }, branch(root, place)));
}

function branch(each, place) {
  const own = each.resource === place.resource && each.namespace === place.namespace && each.name === place.name;
  return h(
    "li",
    null,
    h("span", { class: own ? "own" : "" }, objectLink(each, { q: null })),
    each.state && h("span", { class: `state ${state("Status", each.state)}` }, ` ${each.state}`),
    each.children.length > 0 &&
      h(
        "ul",
        null,
        each.children.map((child) => branch(child, place)),
      ),
    each.more > 0 && h("span", { class: "quiet" }, `and ${count(each.more)} more`),
  );
}

/** The last lines of a pod's log, on demand: they are not in the event log. */
function logs(place) {
  const lines = h("pre", { class: "traceback", tabindex: "0", hidden: true });
  const problem = h("p", { class: "problem", role: "alert", hidden: true });
  const path = `../api/v1/namespaces/${encodeURIComponent(place.namespace)}/pods/${encodeURIComponent(place.name)}/log`;
  async function show() {
    try {
      const told = await text(`${path}?tailLines=${LINES}`);
      fill(lines, told || "The container has written no log lines.");
      lines.hidden = false;
      problem.hidden = true;
    } catch (error) {
      fill(problem, error.message);
      problem.hidden = false;
    }
  }
  return card("Logs", h("button", { onclick: show }, `the last ${LINES} lines`), problem, lines);
}
