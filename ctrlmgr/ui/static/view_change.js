// One change: the picture of what led to it and what it led to, and what it did.

import { h, fill } from "./dom.js";
import { ask } from "./api.js";
import { actor, badge, content, objectLink, outcome, time } from "./changes.js";
import { count, duration } from "./format.js";
import { drawing } from "./graph_drawing.js";
import { change as set } from "./state.js";

export function change() {
  const node = h("div", { class: "change" });
  let shown = "";

  async function update(params, moment) {
    const key = `${moment.at}/${params.run ?? ""}`;
    if (key === shown) return;
    const found = await ask("change", { revision: moment.at });
    shown = key;
    const nodeOf = (id) => found.graph.nodes.find((each) => each.id === id);
    const run = nodeOf(params.run) ?? nodeOf(own(found)); // the chosen one may be of another revision
    fill(
      node,
      heading(found),
      h(
        "div",
        { class: "card picture-card" },
        drawing(found.graph, (chosen) => set({ run: chosen.id }, { replace: true })),
        legend(found),
      ),
      h("div", { class: "two" }, did(found), made(run, found)),
    );
  }

  return { node, update };
}

/** The node of what made a change: its reconcile, or what is inferred in its place. */
function own(found) {
  const guess = `i${found.revision}`;
  return found.graph.nodes.some((each) => each.id === guess) ? guess : `r${found.reconcile}`;
}

function heading(found) {
  return h(
    "header",
    { class: "heading" },
    h("h1", null, `Revision ${count(found.revision)}`),
    badge(found.type),
    objectLink(found),
    h("span", { class: "meta" }, actor(found), " ", time(found.recordedAt)),
  );
}

/** How many nodes some stand for: one that several are alike to, for all of them. */
function standing(nodes) {
  return nodes.reduce((sum, each) => sum + Math.max(1, each.alike?.length ?? 0), 0);
}

function legend(found) {
  const { nodes, edges, root } = found.graph;
  const isAlone = nodes.length === 1 && !edges.length;
  const number = (sort) => count(standing(nodes.filter((each) => each.id.startsWith(sort))));
  const guesses = nodes.some((each) => each.inferred) ? `, ${number("i")} inferred` : "";
  const middle = count(Number(root.slice(1)));
  return h(
    "p",
    { class: "quiet legend-line" },
    isAlone
      ? "No reconcile wrote this change, and no reconcile reacted to it."
      : `${number("e")} events, ${number("r")} reconciles${guesses}. ` +
          `Causes are left of revision ${middle}, effects right of it.`,
  );
}

function did(found) {
  return h("section", { class: "card" }, h("h2", null, "Changed fields"), content(found));
}

function alone(found) {
  return h(
    "section",
    { class: "card" },
    h("h2", null, "Why"),
    h(
      "p",
      null,
      "Requested by ",
      actor(found),
      found.userAgent && h("span", { class: "quiet" }, ` with ${found.userAgent}`),
      ".",
    ),
  );
}

function made(run, found) {
  if (!run) return alone(found);
  return run.inferred ? inferred(run) : ran(run, found.graph);
}

/** What is taken to have happened, where no reconcile was recorded, and what speaks for it. */
function inferred(run) {
  const facts = [
    ["controller", run.controller],
    ["inferred from", run.reason || "objects that you may not read"],
    ...run.because.map((each) => [`revision ${count(each.revision)}`, each.reason]),
    !run.because.length && ["triggers", "unknown"],
  ].filter(Boolean);
  return h(
    "section",
    { class: "card" },
    h("h2", null, "Inferred, not recorded"),
    h(
      "dl",
      { class: "facts" },
      facts.map(([name, what]) => [h("dt", null, name), h("dd", null, what)]),
    ),
  );
}

function ran(run, graph) {
  const node = new Map(graph.nodes.map((each) => [each.id, each]));
  const triggers = standing(graph.edges.filter(([, to]) => to === run.id).map(([from]) => node.get(from)));
  const writes = standing(graph.edges.filter(([from]) => from === run.id).map(([, to]) => node.get(to)));
  const facts = [
    ["controller", run.controller],
    ["key", run.key],
    ["started", time(run.startedAt)],
    ["outcome", outcome(run)],
    run.duration !== null && ["duration", duration(run.duration / 1e6)],
    run.attempt > 1 && ["attempt", count(run.attempt)],
    run.message && ["message", run.message],
    [
      "triggers",
      triggers
        ? triggers + run.hidden === 1
          ? "one change"
          : `${count(triggers + run.hidden)} changes`
        : "none: a timer or a retry",
    ],
    ["writes", writes === 1 ? "one event in this graph" : `${count(writes)} events in this graph`],
  ].filter(Boolean);
  return h(
    "section",
    { class: "card" },
    h("h2", null, "The reconcile"),
    h(
      "dl",
      { class: "facts" },
      facts.map(([name, what]) => [h("dt", null, name), h("dd", null, what)]),
    ),
  );
}
