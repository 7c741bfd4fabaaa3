// Where one is: the whole of it is in the address, after `#`, so that a link opens the same view again.

/**
 * @typedef {Object} State
 * @property {string} view
 * @property {Record<string, string>} params  what the view shows; what all views share is among it
 */

/** What stays the same when one goes from one view to another. */
const SHARED = ["at", "by", "axis", "from", "to"];
const DEFAULTS = { by: "actor", axis: "time" };
const listeners = new Set();
let home = "timeline";

/** Choose the view of an address that names none. @param {string} view */
export function land(view) {
  home = view;
}

/** @returns {State} */
export function current() {
  const [path, query] = location.hash.replace(/^#\/?/, "").split("?");
  return { view: path || home, params: { ...DEFAULTS, ...Object.fromEntries(new URLSearchParams(query ?? "")) } };
}

/**
 * Return the address of a view; what it does not name stays as it is if it is shared, or if the view is the same.
 * @param {string} view @param {Record<string, string | number | null>} [changes]
 */
export function link(view, changes = {}) {
  const now = current();
  const kept = Object.entries(now.params).filter(([name]) => view === now.view || SHARED.includes(name));
  const merged = { ...Object.fromEntries(kept), ...changes };
  const told = Object.entries(merged).filter(
    ([name, value]) => value !== null && value !== "" && value !== DEFAULTS[name],
  );
  const query = new URLSearchParams(told.map(([name, value]) => [name, String(value)]).sort()).toString();
  return `#/${view}${query ? `?${query}` : ""}`;
}

/**
 * Change what is shown within the view. Dragging replaces the address instead of filling the history.
 * @param {Record<string, string | number | null>} changes @param {{replace?: boolean}} [how]
 */
export function change(changes, { replace = false } = {}) {
  go(link(current().view, changes), replace);
}

/** Go to an address that `link` made. @param {string} address @param {boolean} [replace] */
export function go(address, replace = false) {
  if (address === location.hash) return;
  history[replace ? "replaceState" : "pushState"](null, "", address);
  tell();
}

/** Be told whenever the address has changed. @param {() => void} listener */
export function listen(listener) {
  listeners.add(listener);
}

function tell() {
  for (const listener of listeners) listener();
}

addEventListener("hashchange", tell);
addEventListener("popstate", tell);
