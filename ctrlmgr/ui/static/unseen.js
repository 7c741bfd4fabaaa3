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
    h("h2", null, "Nothing that is for you to see"),
    h("p", null, "What is here is shown to users who may get or list it. ", missing),
  );
}
