// What is shown to who may not see the data: how to get a token, and where to put it.

import { h, fill } from "./dom.js";
import { forgetToken, hasToken, keepToken } from "./api.js";

/**
 * @param {string} reason  what the server said
 * @param {() => void} entered  called once there is a token to try
 */
export function door(reason, entered) {
  const field = /** @type {HTMLInputElement} */ (
    h("input", {
      type: "password",
      name: "token",
      autocomplete: "off",
      spellcheck: "false",
      placeholder: "paste a token",
      "aria-label": "token",
    })
  );
  const enter = (event) => {
    event.preventDefault();
    if (!field.value.trim()) return;
    keepToken(field.value);
    entered();
  };
  const refused = hasToken();
  forgetToken();
  const node = h("section", { class: "door" });
  fill(
    node,
    h("h1", null, refused ? "Unknown token" : "Sign in"),
    h(
      "p",
      null,
      "The page is public; its data needs a token. ",
      h("code", null, "ctrlmgr ui"),
      " prints a link that opens it.",
    ),
    h("form", { onsubmit: enter }, field, h("button", { class: "primary" }, "Open")),
    h(
      "p",
      { class: "quiet" },
      "The token stays in this tab and is sent only to this server. Or run ",
      h("code", null, "kubectl proxy"),
      " and open ",
      h("code", null, "http://127.0.0.1:8001/ui/"),
      ": kubectl sends its own credentials.",
    ),
    h("p", { class: "quiet reason" }, reason),
  );
  queueMicrotask(() => field.focus());
  return node;
}
