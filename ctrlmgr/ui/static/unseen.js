// A view that has nothing to show to its reader, who may not see everything.

import { h } from "./dom.js";

/**
 * Say which right is missing, rather than that there is nothing.
 * @param {{unseen: string}} moment
 */
export function unseen(moment) {
  const missing = h("span", { class: "reason" }, moment.unseen);
  return h(
    "div",
    { class: "empty" },
    h("h2", null, "Access denied"),
    h("p", null, "You need the right to get or list these objects. ", missing),
  );
}
