// Everything that can be done without a mouse, and the list of it.

import { h } from "./dom.js";

/** @type {Array<[string, string]>} */
const KEYS = [
  ["← →", "previous or next revision"],
  ["⇧← ⇧→", "ten revisions back or forward"],
  ["Home End", "first or newest revision"],
  ["+ −", "zoom in or out"],
  ["0", "the whole log"],
  ["l", "follow the newest revision, or stop following"],
  ["r", "go to a revision or a time"],
  ["/", "filter"],
  ["1 … 7", "timeline, objects, queues, leaders, health, requests, cluster"],
  ["f", "failures"],
  ["?", "show this list"],
];

/** @param {Record<string, () => void>} actions by key; `Shift+` stands before those that take it */
export function listen(actions) {
  addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
    const target = /** @type {HTMLElement} */ (event.target);
    if (target.matches("input, select, textarea")) {
      if (event.key === "Escape") target.blur();
      return;
    }
    const action = actions[event.shiftKey && event.key.startsWith("Arrow") ? `Shift+${event.key}` : event.key];
    if (!action) return;
    event.preventDefault();
    action();
  });
}

/** Show what the keys do. */
export function help() {
  const list = h(
    "dl",
    { class: "keys" },
    KEYS.map(([keys, what]) => [
      h(
        "dt",
        null,
        keys.split(" ").map((key) => h("kbd", null, key)),
      ),
      h("dd", null, what),
    ]),
  );
  const dialog = /** @type {HTMLDialogElement} */ (
    h(
      "dialog",
      { class: "help", onclose: () => dialog.remove(), onclick: () => dialog.close() },
      h("h2", null, "Keys"),
      list,
    )
  );
  document.body.append(dialog);
  dialog.showModal();
}
