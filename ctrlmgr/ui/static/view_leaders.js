// The leader of each term, its start and end, and its number of writes.

import { h, fill, headings } from "./dom.js";
import { ask } from "./api.js";
import { link } from "./state.js";
import { count, duration } from "./format.js";
import { revisionLink, time } from "./changes.js";
import { colour, learn } from "./colours.js";

const COLUMNS = ["Term", "Holder", "Lease", "Start", "End", "Duration", "Revisions", "Writes"];
const NUMBERS = new Set(["Term", "Duration", "Writes"]);

export function leaders() {
  const node = h("div");
  let shown = -1;

  async function update(params, moment) {
    if (moment.head === shown) return;
    const { terms, now } = await ask("leaders");
    shown = moment.head;
    if (!terms.length) {
      fill(
        node,
        h(
          "div",
          { class: "empty" },
          h("h2", null, "No leader yet"),
          h("p", null, "No event in the log carries a term. Leaders are elected unless leader election is off."),
        ),
      );
      return;
    }
    learn(
      "holder",
      terms.map((term) => term.holder),
    );
    fill(
      node,
      h("div", { class: "card terms" }, h("h2", null, "Terms"), bands(terms, now)),
      h("div", { class: "card scroll" }, table(terms)),
    );
  }

  return { node, update };
}

function bands(terms, now) {
  const first = Math.min(...terms.map((term) => term.from));
  const last = Math.max(...terms.map((term) => term.to));
  const wide = Math.max(1, last - first);
  const most = Math.max(...terms.map((term) => term.writes));
  return h(
    "div",
    { class: "bands", role: "group", "aria-label": "terms in time" },
    [...terms].reverse().map((term) => {
      const bar = h(
        "a",
        {
          class: `band ${colour("holder", term.holder)}`,
          href: link("change", { at: term.firstRevision }),
          title: `term ${term.term}: ${term.holder}`,
        },
        h("span", null, `${term.term}`),
        h("small", null, term.holder),
      );
      bar.style.left = `${((term.from - first) / wide) * 100}%`;
      bar.style.width = `max(6px, ${((term.to - term.from) / wide) * 100}%)`;
      bar.style.height = `${28 + (term.writes / most) * 36}px`;
      return bar;
    }),
  );
}

function table(terms) {
  const newest = Math.max(...terms.map((term) => term.term));
  return h(
    "table",
    null,
    headings(COLUMNS, NUMBERS),
    h(
      "tbody",
      null,
      terms.map((term) =>
        h(
          "tr",
          { class: term.term === newest ? "now" : "" },
          h("td", { class: "number" }, count(term.term)),
          h("td", null, h("i", { class: `dot ${colour("holder", term.holder)}` }), term.holder),
          h("td", { class: "quiet" }, term.lease),
          h("td", null, time(term.from)),
          h(
            "td",
            null,
            term.term === newest ? h("span", { class: "quiet" }, "last renewed ", time(term.to)) : time(term.to),
          ),
          h("td", { class: "number" }, duration((term.to - term.from) / 1e6)),
          h("td", null, revisionLink(term.firstRevision), " – ", revisionLink(term.lastRevision)),
          h("td", { class: "number" }, count(term.writes)),
        ),
      ),
    ),
  );
}
