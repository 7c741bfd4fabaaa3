// The reconciles that fail at the moment that is looked at: what, why, since when, and when the next retry is.

import { h, fill } from "./dom.js";
import { ask } from "./api.js";
import { link } from "./state.js";
import { count } from "./format.js";

export function failures() {
  const node = h("div", { class: "failures" });
  let shown = "";

  async function update(params, moment) {
    const found = await ask("failures", { at: moment.live ? null : moment.at });
    const key = JSON.stringify([found.failures, moment.live, moment.unseen]);
    if (key === shown) return;
    shown = key;
    const opened = open(node);
    fill(node, found.failures.length ? found.failures.map((each) => failure(each, opened)) : nothing(moment));
  }

  return { node, update };
}

/** Return the keys of the failures whose traceback is open. @param {Element} node */
export function open(node) {
  return new Set([...node.querySelectorAll("details[open]")].map((each) => each.dataset.key));
}

function nothing(moment) {
  return h(
    "div",
    { class: "empty" },
    h("h2", null, "No reconcile fails"),
    h(
      "p",
      null,
      moment.live ? "All controllers reconcile their objects." : `At revision ${count(moment.at)} none failed.`,
    ),
  );
}

/**
 * Return the card of a failure; `opened` are the keys of the tracebacks to show. @param {any} each
 * @param {Set<string>} opened @param {boolean} [named]  whether it names the object
 */
export function failure(each, opened, named = true) {
  const key = `${each.controller}/${each.resource}/${each.object}`;
  const facts = [
    ["controller", each.controller],
    ["attempts", count(each.attempts)],
    ["since", moment(each.since)],
    ["last attempt", moment(each.lastAttempt)],
    ["next retry", each.ended ? "none: it succeeded" : each.nextRetry ? moment(each.nextRetry) : "at the next change"],
  ];
  return h(
    "article",
    { class: "card failure" },
    named && h("h2", null, object(each)),
    h("p", { class: "error" }, each.error),
    h(
      "dl",
      { class: "facts inline" },
      facts.map(([name, what]) => h("div", null, h("dt", null, name), h("dd", null, what))),
    ),
    each.traceback &&
      h(
        "details",
        { "data-key": key, open: opened.has(key) },
        h("summary", null, "traceback"),
        h("pre", { class: "traceback", tabindex: "0" }, each.traceback.trimEnd()),
      ),
  );
}

function object(each) {
  const slash = each.object.indexOf("/");
  const [namespace, name] = slash < 0 ? ["", each.object] : [each.object.slice(0, slash), each.object.slice(slash + 1)];
  const label = [
    h("span", { class: "kind" }, each.kind || each.controller),
    " ",
    h("span", { class: "name" }, each.object),
  ];
  if (!each.resource) return h("span", { class: "object" }, label);
  return h("a", { class: "object", href: link("object", { resource: each.resource, namespace, name }) }, label);
}

/** A time of the log's records, RFC 3339. @param {string} text */
function moment(text) {
  return h("time", { datetime: text, title: text }, text.slice(0, 19).replace("T", " "));
}
