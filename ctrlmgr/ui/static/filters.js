// What of all that happened is asked for: by namespace, kind, actor, verb and name, and whether quiet kinds are shown.

import { h, fill } from "./dom.js";
import { ask } from "./api.js";
import { change as travel } from "./state.js";

const ASKED = ["namespace", "kind", "actor", "verb", "q", "quiet"];

/** Make the fields; what they say is in the address. */
export function filters() {
  const fields = {
    namespace: suggesting("namespace"),
    kind: suggesting("kind"),
    actor: suggesting("actor"),
    verb: /** @type {HTMLSelectElement} */ (
      h(
        "select",
        { "aria-label": "verb", onchange: () => travel({ verb: fields.verb.value }) },
        ["", "ADDED", "MODIFIED", "DELETED"].map((verb) => h("option", { value: verb }, verb || "any verb")),
      )
    ),
    q: /** @type {HTMLInputElement} */ (
      h("input", {
        type: "search",
        placeholder: "filter by name  /",
        "aria-label": "filter",
        spellcheck: "false",
        oninput: () => travel({ q: fields.q.value }, { replace: true }),
      })
    ),
  };
  const quiet = /** @type {HTMLInputElement} */ (
    h("input", { type: "checkbox", onchange: () => travel({ quiet: quiet.checked ? 1 : null }) })
  );
  const all = h("button", { onclick: () => travel(Object.fromEntries(ASKED.map((name) => [name, null]))) }, "clear");
  const node = h(
    "div",
    { class: "toolbar", role: "search" },
    Object.values(fields).map((field) => [field, field.nextList]),
    h("label", null, quiet, "leases and Events"),
    all,
  );

  function suggesting(name) {
    const list = h("datalist", { id: `suggested-${name}` });
    const field = h("input", {
      type: "search",
      list: list.id,
      placeholder: `any ${name}`,
      "aria-label": name,
      spellcheck: "false",
      size: 14,
      onfocus: () => void look(),
      onchange: () => travel({ [name]: field.value.trim() }),
    });
    field.nextList = list;
    return field;
  }

  /** @param {Record<string, string>} params */
  function of(params) {
    return Object.fromEntries(ASKED.map((name) => [name, params[name] ?? ""]));
  }

  let at = 0;

  /** Show what the address asks for. @param {Record<string, string>} params */
  function show(params, moment, events) {
    at = moment.unseen ? 0 : moment.at;
    for (const [name, field] of Object.entries(fields))
      if (document.activeElement !== field) field.value = params[name] ?? "";
    quiet.checked = Boolean(params.quiet);
    all.hidden = !ASKED.some((name) => params[name]);
    suggest("actor", new Set(events.map((event) => event.actor)));
  }

  /** Look up what there is to be chosen. */
  async function look() {
    if (!at) return;
    const { kinds } = await ask("kinds", { at });
    suggest("kind", new Set(kinds.map((kind) => kind.resource)));
    suggest("namespace", new Set(kinds.flatMap((kind) => Object.keys(kind.namespaces)).filter(Boolean)));
  }

  function suggest(name, values) {
    const known = new Set([...fields[name].nextList.children].map((option) => option.value));
    if (name !== "actor") known.clear();
    fill(
      fields[name].nextList,
      [...new Set([...known, ...values])].sort().map((value) => h("option", { value })),
    );
  }

  return { node, of, show, focus: () => fields.q.focus() };
}
