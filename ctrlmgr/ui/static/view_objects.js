// What there was: the kinds on the left, the things of one kind on the right, in Kubernetes' own columns.

import { h, fill } from "./dom.js";
import { ask } from "./api.js";
import { change, link } from "./state.js";
import { count, placed, plural } from "./format.js";
import { state } from "./trouble.js";

const NEAR = 20;
const FIRST = "pods";

export function objects() {
  const kinds = h("nav", { class: "card kinds", "aria-label": "kinds" });
  const namespaces = h("select", {
    "aria-label": "namespace",
    onchange: () => change({ namespace: namespaces.value }),
  });
  const filter = /** @type {HTMLInputElement} */ (
    h("input", {
      type: "search",
      placeholder: "filter by name  /",
      "aria-label": "filter",
      spellcheck: "false",
      oninput: () => change({ q: filter.value }, { replace: true }),
    })
  );
  const wide = h("input", {
    type: "checkbox",
    onchange: () => change({ wide: wide.checked ? 1 : null }, { replace: true }),
  });
  const summary = h("span", { class: "quiet", role: "status" });
  const place = h("div", { class: "card scroll" });
  const node = h(
    "div",
    { class: "two narrow-left" },
    kinds,
    h("div", null, h("div", { class: "toolbar" }, namespaces, filter, h("label", null, wide, "wide"), summary), place),
  );
  let more = [];

  async function update(params, moment) {
    const known = await ask("kinds", { at: moment.at });
    // Who may see no kind asks for one all the same: the refusal says which right that takes.
    const first = known.kinds[0]?.resource ?? (moment.unseen && FIRST);
    const resource = params.resource || (known.kinds.some((kind) => kind.resource === FIRST) ? FIRST : first);
    fill(
      kinds,
      known.kinds.map((kind) => entry(kind, resource, params.namespace)),
    );
    if (!resource) {
      fill(
        place,
        h(
          "div",
          { class: "empty" },
          h("h2", null, "No objects yet"),
          h("p", null, `At revision ${count(moment.at)} no object existed.`),
        ),
      );
      return;
    }
    offer(
      known.kinds.find((kind) => kind.resource === resource),
      params.namespace ?? "",
    );
    if (document.activeElement !== filter) filter.value = params.q ?? "";
    wide.checked = Boolean(params.wide);
    const query = { resource, namespace: params.namespace, q: params.q, at: moment.at, near: NEAR };
    const table = await ask("objects", query);
    more = [];
    show(table, query, params, moment);
  }

  function offer(kind, chosen) {
    const names = new Set(Object.keys(kind?.namespaces ?? {}).filter(Boolean));
    if (chosen) names.add(chosen);
    namespaces.hidden = names.size === 0;
    fill(
      namespaces,
      h("option", { value: "" }, "all namespaces"),
      [...names].sort().map((name) => h("option", { value: name, selected: name === chosen }, name)),
    );
    namespaces.value = chosen;
  }

  function show(table, query, params, moment) {
    const rows = [...more, ...table.rows];
    const columns = table.columns
      .map((column, index) => ({ ...column, index }))
      .filter((column) => !column.wide || params.wide);
    const namespaced = !params.namespace && rows.some((row) => row.namespace);
    const lately = rows.filter((row) => row.revision > moment.at - NEAR).length;
    fill(
      summary,
      `${count(table.total)} ${plural(query.resource)}`,
      lately > 0 && ` · ${count(lately)} changed recently`,
    );
    if (!rows.length && !table.deleted.length) {
      fill(
        place,
        h(
          "div",
          { class: "empty" },
          h("h2", null, `No ${plural(query.resource)}`),
          h(
            "p",
            null,
            params.q ? `No name contains “${params.q}”.` : `None existed at revision ${count(moment.at)}.`,
          ),
        ),
      );
      return;
    }
    const head = h(
      "tr",
      null,
      namespaced && h("th", null, "Namespace"),
      columns.map((column) => h("th", { class: column.type === "integer" && "number" }, column.name)),
      h("th", { class: "number" }, "Revision"),
    );
    const body = rows.map((row) => line(row, columns, namespaced, query.resource, moment));
    const gone = table.deleted.map((row) => ghost(row, columns.length, namespaced, query.resource));
    fill(
      place,
      h("table", { class: "objects" }, h("thead", null, head), h("tbody", null, body, gone)),
      table.next &&
        h("button", { class: "more", onclick: () => next(table, rows, query, params, moment) }, "show more"),
    );
  }

  async function next(table, rows, query, params, moment) {
    more = rows;
    show(await ask("objects", { ...query, after: table.next }), query, params, moment);
  }

  return { node, update, filter: () => filter.focus() };
}

function entry(kind, chosen, namespace) {
  const number = namespace
    ? (kind.namespaces[namespace] ?? 0)
    : Object.values(kind.namespaces).reduce((sum, each) => sum + each, 0);
  const [name, ...group] = kind.resource.split(".");
  return h(
    "a",
    {
      href: link("objects", { resource: kind.resource, q: null }),
      "aria-current": kind.resource === chosen && "true",
      title: kind.resource,
      class: [!number && "none", kind.custom && "custom"].filter(Boolean).join(" "),
    },
    h("span", null, name, group.length > 0 && h("small", null, group.join("."))),
    kind.failing > 0 && h("i", { class: "failing", title: "objects whose reconciles fail" }, count(kind.failing)),
    h("b", null, count(number)),
  );
}

function line(row, columns, namespaced, resource, moment) {
  const age = moment.at - row.revision;
  const mark = age === 0 ? "fresh now" : age < NEAR ? "fresh" : "";
  return h(
    "tr",
    { class: mark },
    namespaced && h("td", { class: "quiet" }, row.namespace),
    columns.map((column) =>
      h(
        "td",
        { class: column.type === "integer" ? "number" : state(column.name, row.cells[column.index]) },
        column.name === "Name"
          ? h("a", { href: address(resource, row) }, row.name)
          : String(row.cells[column.index] ?? ""),
      ),
    ),
    h(
      "td",
      { class: "number" },
      h("a", { class: "rev", href: link("change", { at: row.revision }) }, count(row.revision)),
    ),
  );
}

function address(resource, row) {
  return link("object", { resource, namespace: row.namespace, name: row.name, q: null, wide: null });
}

function ghost(row, width, namespaced, resource) {
  return h(
    "tr",
    { class: "gone" },
    namespaced && h("td", null, row.namespace),
    h(
      "td",
      { colspan: width },
      h("a", { href: address(resource, row), title: placed(row) }, row.name),
      h("span", { class: "badge deleted" }, "deleted"),
    ),
    h(
      "td",
      { class: "number" },
      h("a", { class: "rev", href: link("change", { at: row.revision }) }, count(row.revision)),
    ),
  );
}
