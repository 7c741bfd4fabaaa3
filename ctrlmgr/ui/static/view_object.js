// One object: its YAML with who set each line, and everything that became of it.

import { h, fill } from "./dom.js";
import { ask } from "./api.js";
import { change, link } from "./state.js";
import { actor, badge, content, reconcile, revisionLink, time } from "./changes.js";
import { clock, count, moment as exact, placed, plural, who } from "./format.js";
import { colour } from "./colours.js";
import { rollout } from "./rollout.js";
import { surroundings } from "./surroundings.js";

const PAGE = 40;

export function object() {
  const heading = h("header", { class: "heading" });
  const state = h("section", { class: "card yaml-card" });
  const past = h("section", { class: "card history-card" });
  const rolled = rollout();
  const around = surroundings();
  const node = h(
    "div",
    { class: "object-page" },
    heading,
    rolled.node,
    around.node,
    h("div", { class: "two wide-right" }, past, state),
  );
  let told = [];
  let toldOf = "";
  let more = false;

  async function update(params, moment) {
    const place = { resource: params.resource ?? "", namespace: params.namespace ?? "", name: params.name ?? "" };
    const found = await asked(place, moment.at);
    const key = `${JSON.stringify(place)}@${found.revision}`;
    if (key !== toldOf) {
      const answer = await ask("history", { ...place, limit: PAGE, before: moment.at + 1 });
      [told, more, toldOf] = [answer.changes, answer.more, key];
    }
    show(found, place, params, moment);
    await Promise.all([rolled.update(place, moment), around.update(place, moment)]);
  }

  function show(found, place, params, moment) {
    fill(
      heading,
      h("h1", null, placed(place)),
      h("span", { class: "kind" }, found.kind || plural(place.resource)),
      found.lines && !found.exists && h("span", { class: "badge deleted" }, "deleted"),
      !found.lines && h("span", { class: "badge" }, "does not exist"),
      h("span", { class: "meta quiet" }, found.apiVersion, found.uid && ` · uid ${found.uid}`),
      h(
        "a",
        {
          class: "button",
          href: link("objects", { resource: place.resource, namespace: place.namespace || null, name: null }),
        },
        `all ${plural(place.resource)}`,
      ),
    );
    if (found.lines) fill(state, toolbar(found, params), yaml(found, params.blame !== "off"));
    else fill(state, h("div", { class: "empty" }, h("h2", null, "The object did not exist"), h("p", null, found.why)));
    const later =
      found.newest > moment.at &&
      h(
        "p",
        { class: "later" },
        h(
          "a",
          { href: link("object", { at: found.newest }) },
          `It was changed later, last at revision ${count(found.newest)}`,
        ),
      );
    fill(
      past,
      h("h2", null, "History"),
      later,
      told.length
        ? h(
            "ol",
            { class: "history" },
            told.map((each) => entry(each, found.revision)),
          )
        : h("p", { class: "quiet" }, "No events."),
      more && h("button", { class: "more", onclick: () => older(found, place, params, moment) }, "older events"),
    );
  }

  async function older(found, place, params, moment) {
    const answer = await ask("history", { ...place, limit: PAGE, before: told.at(-1).revision });
    told = [...told, ...answer.changes];
    more = answer.more;
    show(found, place, params, moment);
  }

  return { node, update };
}

/** What it was; `why` instead of lines if it was not. */
async function asked(place, at) {
  try {
    return await ask("object", { ...place, at });
  } catch (error) {
    if (error.code !== 404 && error.code !== 410) throw error;
    return {
      newest: 0,
      why:
        error.code === 410
          ? `That revision was compacted: ${error.message}.`
          : `At revision ${count(at)} it had not been created.`,
    };
  }
}

function toolbar(found, params) {
  const blamed = params.blame !== "off";
  const copy = h(
    "button",
    {
      onclick: async () => {
        await navigator.clipboard.writeText(text(found));
        fill(copy, "copied");
      },
    },
    "copy",
  );
  return h(
    "div",
    { class: "toolbar" },
    h("h2", null, "State at revision ", count(found.at)),
    h("span", { class: "grow" }),
    h(
      "button",
      {
        "aria-pressed": String(blamed),
        onclick: () => change({ blame: blamed ? "off" : null }, { replace: true }),
        title: "show which change set each line",
      },
      "blame",
    ),
    copy,
  );
}

const text = (found) => found.lines.map(([depth, line]) => "  ".repeat(depth) + line).join("\n") + "\n";

function yaml(found, blamed) {
  const newest = Math.max(0, ...Object.keys(found.changes).map(Number));
  let last = null;
  const rows = found.lines.map(([depth, line, revision, certain]) => {
    const setter = revision === undefined ? null : found.changes[revision];
    const isNew = setter !== null && revision !== last;
    if (setter) last = revision;
    const code = h("code", null, words(line));
    code.style.paddingLeft = `${depth * 2}ch`;
    return h(
      "div",
      { class: revision === newest ? "line newest" : "line" },
      blamed && gutter(setter, isNew, certain),
      code,
    );
  });
  return h("div", { class: blamed ? "yaml blamed" : "yaml" }, rows);
}

function gutter(setter, isNew, certain) {
  if (!setter) return h("span", { class: "gutter" });
  const why = setter.controller ? `\nreconcile of ${setter.key} by ${setter.controller}` : "";
  const title = `${setter.actor}\n${exact(setter.recordedAt)}${why}`;
  const node = h(
    "a",
    { class: isNew ? "gutter" : "gutter same", href: link("change", { at: setter.revision }), title },
    h("i", { class: `dot ${colour("actor", setter.actor)}` }),
    h("span", { class: "rev" }, `${certain ? "" : "≤"}${count(setter.revision)}`),
    h("span", { class: "by" }, who(setter.actor)),
    h("span", { class: "at" }, clock(setter.recordedAt)),
  );
  return node;
}

/** A line of YAML in parts that can be coloured. */
function words(line) {
  const found = /^((?:- )*)((?:[^":]+|"(?:[^"\\]|\\.)*"):)( .*|)$/.exec(line);
  if (!found) return h("span", { class: line.startsWith("- ") ? "" : "text" }, line || " ");
  const [, dash, name, value] = found;
  return [dash, h("span", { class: "field" }, name), h("span", { class: kindOf(value.trim()) }, value)];
}

function kindOf(value) {
  if (value === "(hidden)" || value === '"(hidden)"') return "secret";
  if (/^(-?[\d.eE+]+|true|false|null)$/.test(value)) return "literal";
  return "text";
}

function entry(each, now) {
  return h(
    "li",
    { class: each.revision === now ? "now" : "" },
    h(
      "header",
      null,
      revisionLink(each.revision),
      badge(each.type),
      actor(each),
      h("span", { class: "quiet" }, time(each.recordedAt)),
      h(
        "button",
        { class: "look", onclick: () => change({ at: each.revision }), title: "go to this revision" },
        "look",
      ),
    ),
    reconcile(each) && h("p", { class: "quiet" }, reconcile(each)),
    content(each),
  );
}
