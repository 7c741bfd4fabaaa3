// The workqueues of the process that answers, as they are now and as they were since the page was opened.

import { h, fill } from "./dom.js";
import { Refused, ask } from "./api.js";
import { count, duration, precise } from "./format.js";
import { sparkline } from "./sparkline.js";

const KEPT = 90;
const SPAN = 10;

export function queues() {
  const node = h("div");
  /** @type {Array<{now: number, queues: Record<string, any>}>} */
  const samples = [];

  async function update() {
    const [answer, failing] = await Promise.all([ask("queues"), failures()]);
    for (const queue of answer.queues) queue.failing = failing.get(queue.name) ?? 0;
    samples.push({ now: answer.now, queues: Object.fromEntries(answer.queues.map((queue) => [queue.name, queue])) });
    if (samples.length > KEPT) samples.shift();
    if (!answer.queues.length) {
      fill(
        node,
        h(
          "div",
          { class: "empty" },
          h("h2", null, "No queues"),
          h("p", null, "This server runs no controllers: it serves only the API, or another server is the leader."),
        ),
      );
      return;
    }
    fill(
      node,
      h(
        "p",
        { class: "lead quiet" },
        "The work queues of the controllers in this server process. ",
        "The charts begin when this page was opened.",
      ),
      h(
        "div",
        { class: "grid" },
        [...answer.queues].sort(order).map((queue) => tile(queue, samples)),
      ),
    );
  }

  return { node, update, always: true };
}

/** Return how many objects fail, by controller; none if there is no database to ask. */
async function failures() {
  const found = new Map();
  try {
    for (const each of (await ask("failures")).failures)
      found.set(each.controller, (found.get(each.controller) ?? 0) + 1);
  } catch (error) {
    if (!(error instanceof Refused) || error.needsToken) throw error;
  }
  return found;
}

/** Queues with failing keys first, then those of apps, then the busiest; by name otherwise. */
function order(one, other) {
  const rank = (queue) => [queue.failing, Number(queue.own), queue.depth + queue.running];
  const [first, second] = [rank(one), rank(other)];
  const place = first.findIndex((each, index) => each !== second[index]);
  return place < 0 ? one.name.localeCompare(other.name) : second[place] - first[place];
}

function tile(queue, samples) {
  const series = samples.map((sample) => sample.queues[queue.name]).filter(Boolean);
  const first = samples[Math.max(0, samples.length - 1 - SPAN)];
  const then = first.queues[queue.name] ?? queue;
  const seconds = (samples.at(-1).now - first.now) / 1e6;
  const rate = (name) => (seconds > 0 ? (queue[name] - then[name]) / seconds : 0);
  const adds = series.slice(1).map((each, index) => Math.max(0, each.adds - series[index].adds));
  const rests = queue.failing > 0 ? `${count(queue.failing)} failing` : "idle";
  const busy =
    queue.running > 0 ? `${count(queue.running)} running, longest for ${duration(queue.longest)}` : rests;
  const facts = [
    ["added", `${precise(rate("adds"))}/s`, count(queue.adds)],
    ["retried", `${precise(rate("retries"))}/s`, count(queue.retries)],
    ["work", average(queue.worked), count(queue.worked.count)],
    ["wait", average(queue.queued), ""],
  ];
  return h(
    "article",
    { class: queue.failing > 0 || queue.retries > then.retries ? "card tile warn" : "card tile" },
    h("header", null, h("h2", null, queue.name), h("span", { class: queue.running ? "state busy" : "state" }, busy)),
    h(
      "div",
      { class: "figures" },
      h("div", { class: "depth" }, h("b", null, count(queue.depth)), h("span", null, "waiting")),
      h(
        "div",
        { class: "lines" },
        h(
          "label",
          null,
          "depth",
          sparkline(
            series.map((each) => each.depth),
            "depth",
          ),
        ),
        h("label", null, "added", sparkline(adds, "added")),
      ),
    ),
    h(
      "dl",
      { class: "facts four" },
      facts.map(([name, now, all]) =>
        h("div", null, h("dt", null, name), h("dd", null, now, all && h("small", null, all))),
      ),
    ),
  );
}

const average = ({ count: number, total }) => (number ? duration(total / number) : "—");
