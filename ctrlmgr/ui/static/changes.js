// Changes in words and colours: what came, what went, what became something else.

import { h } from "./dom.js";
import { clock, count, day, duration, moment as exact, plural, placed, value, who } from "./format.js";
import { colour } from "./colours.js";
import { link } from "./state.js";

const FEW = 14;

/** @param {number} microseconds */
export function time(microseconds) {
  return h(
    "time",
    { title: exact(microseconds), datetime: exact(microseconds) },
    h("span", { class: "day" }, `${day(microseconds)} `),
    clock(microseconds),
  );
}

/** ADDED, MODIFIED or DELETED. @param {string} type */
export function badge(type) {
  return h("span", { class: `badge ${type.toLowerCase()}` }, type.toLowerCase());
}

/** The dot that a name has in the legend. @param {import("./colours.js").Sort} sort @param {string} name */
export function dot(sort, name) {
  return h("i", { class: `dot ${colour(sort, name)}` });
}

/** Who wrote something. @param {{actor: string, userAgent: string}} author @param {boolean} [marked] */
export function actor(author, marked = true) {
  const title = author.userAgent ? `${author.actor} (${author.userAgent})` : author.actor;
  return h(
    "span",
    { class: "actor", title },
    marked && dot("actor", author.actor),
    who(author.actor),
  );
}

/**
 * A link to an object as it is at the moment that is looked at.
 * @param {{resource: string, namespace: string, name: string}} place
 * @param {Record<string, string | number | null>} [more]
 */
export function objectLink(place, more = {}) {
  const { resource, namespace, name } = place;
  return h(
    "a",
    { class: "object", href: link("object", { resource, namespace, name, ...more }), title: resource },
    h("span", { class: "kind" }, plural(resource)),
    " ",
    h("span", { class: "name" }, placed(place)),
  );
}

/** A link to why something happened. @param {number} revision @param {string} [text] */
export function revisionLink(revision, text = count(revision)) {
  return h(
    "a",
    { class: "rev", href: link("change", { at: revision, run: null }), title: `why revision ${revision}?` },
    text,
  );
}

/**
 * What differs, a line each.
 * @param {Array<{path: string, from?: unknown, to?: unknown}>} differences @param {boolean} [all]
 */
export function diff(differences, all = false) {
  const shown = all ? differences : differences.slice(0, FEW);
  const list = h("ul", { class: "diff" }, shown.map(line));
  if (shown.length < differences.length) {
    const more = h(
      "button",
      {
        class: "more",
        onclick: () => {
          list.replaceWith(diff(differences, true));
        },
      },
      `${differences.length - FEW} more`,
    );
    list.append(h("li", null, more));
  }
  return list;
}

function line(difference) {
  const came = !("from" in difference);
  const went = !("to" in difference);
  const sides = [
    !came && h("del", null, value(difference.from)),
    !came && !went && h("span", { class: "arrow" }, " → "),
    !went && h("ins", null, value(difference.to)),
  ];
  return h(
    "li",
    { class: came ? "came" : went ? "went" : "became" },
    h("span", { class: "sign" }, came ? "+" : went ? "−" : "~"),
    h("span", { class: "path" }, difference.path),
    " ",
    sides,
  );
}

/** What one change did. @param {any} change */
export function content(change) {
  if (change.lost) return h("p", { class: "quiet" }, "the previous state was compacted");
  if (change.type === "ADDED") return h("p", { class: "quiet" }, "created");
  if (change.type === "DELETED" && !change.changes.length) return h("p", { class: "quiet" }, "deleted");
  if (!change.changes.length)
    return h("p", { class: "quiet" }, "no changed fields except managed fields");
  return diff(change.changes);
}

/** The reconcile a change comes from, in a few words. @param {any} change */
export function reconcile(change) {
  if (!change.controller) return null;
  return h(
    "span",
    { class: "reconcile" },
    change.controller === "admission" ? `changed during admission by ${change.key}` : `reconcile of ${change.key}`,
    change.attempt > 1 && ` · attempt ${change.attempt}`,
    change.term > 0 && ` · term ${change.term}`,
  );
}

/** How a reconcile went. @param {any} run */
export function outcome(run) {
  if (run.duration === null) return "running";
  return `${run.outcome} in ${duration(run.duration / 1e6)}`;
}
