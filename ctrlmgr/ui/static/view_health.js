// Whether all is well: the checks, the log, and the process that answers.

import { h, fill } from "./dom.js";
import { ask } from "./api.js";
import { count, duration, size } from "./format.js";
import { revisionLink, time } from "./changes.js";

const READY = "readyz";

export function health() {
  const node = h("div");

  async function update() {
    const answer = await ask("health");
    fill(
      node,
      verdict(answer),
      h(
        "div",
        { class: "grid" },
        answer.endpoints.filter((each) => each.name === READY).map(endpoint),
        h("article", { class: "card" }, h("h2", null, "Log"), facts(log(answer.log, answer.now))),
        h("article", { class: "card" }, h("h2", null, "Process"), facts(process(answer.process, answer.now))),
        answer.endpoints.filter((each) => each.name !== READY).map(endpoint),
      ),
    );
  }

  return { node, update, always: true };
}

function verdict(answer) {
  const failed = answer.endpoints.find((each) => each.name === READY)?.checks.filter((check) => check.problem) ?? [];
  const words = failed.length
    ? `Not ready: ${failed.length === 1 ? "one check fails" : `${count(failed.length)} checks fail`}`
    : "Ready";
  return h("p", { class: failed.length ? "verdict bad" : "verdict good", role: "status" }, words);
}

function endpoint({ name, checks }) {
  return h(
    "article",
    { class: "card" },
    h("h2", null, `/${name}`),
    h(
      "ul",
      { class: "checks" },
      checks.map((check) =>
        h(
          "li",
          { class: check.problem ? "bad" : "good" },
          h("span", { class: "mark", "aria-hidden": "true" }, check.problem ? "✕" : "✓"),
          h("span", null, check.name, check.problem && h("small", null, check.problem)),
        ),
      ),
    ),
  );
}

function log(log_, now) {
  const known = [["database", log_.database]];
  if (log_.problem) return [...known, ["problem", h("span", { class: "problem" }, log_.problem)]];
  const floors = Object.entries(log_.floors);
  return [
    ...known,
    ["head", revisionLink(log_.head)],
    ["newest event", log_.head > 0 && [time(log_.headAt), ` (${duration(Math.max(0, now - log_.headAt) / 1e6)} ago)`]],
    ["uuid", h("code", null, log_.uuid)],
    floors.length > 0 && [
      "compacted",
      floors.map(([resource, floor]) => h("div", null, `${resource || "everything"} up to ${count(floor)}`)),
    ],
  ];
}

function process(process_, now) {
  return [
    ["version", process_.version],
    ["role", process_.role],
    ["uptime", duration((now - process_.startedAt) / 1e6)],
    ["since", time(process_.startedAt)],
    process_.memory && ["memory", size(process_.memory)],
    ["threads", count(process_.threads)],
    ["process id", String(process_.pid)],
    ["Python", process_.python],
  ];
}

function facts(known) {
  return h(
    "dl",
    { class: "facts" },
    known.filter(Boolean).map(([name, what]) => [h("dt", null, name), h("dd", null, what)]),
  );
}
