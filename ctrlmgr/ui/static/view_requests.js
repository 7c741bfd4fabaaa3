// What was asked of the server, newest first: also what was refused, and what was only read.

import { h, fill, headings } from "./dom.js";
import { ask } from "./api.js";
import { link } from "./state.js";
import { count, who } from "./format.js";
import { time } from "./changes.js";
import { unseen } from "./unseen.js";

const COLUMNS = ["Time", "User", "Verb", "Resource", "Namespace", "Name", "Code", "Reason", "ms", "Source"];
const NUMBERS = new Set(["Code", "ms"]);

export function requests() {
  const node = h("div");

  async function update(params, moment) {
    const asked = { refused: params.refused === "yes" ? "yes" : "no", user: params.user ?? "" };
    const { kept, requests: found } = await ask("requests", asked);
    if (!kept) {
      fill(
        node,
        h(
          "div",
          { class: "empty" },
          h("h2", null, "No requests are recorded"),
          h("p", null, "Set audit.policy_file to record requests; audit.keep_for sets how long they are kept."),
        ),
      );
      return;
    }
    const listed = found.length ? h("div", { class: "card scroll" }, table(found, asked)) : none(moment);
    fill(node, choices(asked), listed);
  }

  return { node, update, always: true };
}

function choices({ refused, user }) {
  const other = refused === "yes" ? "no" : "yes";
  return h(
    "p",
    { class: "quiet" },
    h("a", { href: link("requests", { refused: other, user }) }, other === "yes" ? "Refused only" : "All"),
    user && [" · of ", h("b", null, user), " · "],
    user && h("a", { href: link("requests", { refused, user: null }) }, "of all users"),
  );
}

function none(moment) {
  return moment.unseen ? unseen(moment) : h("div", { class: "empty" }, h("h2", null, "No requests"));
}

function table(found, { refused }) {
  return h(
    "table",
    null,
    headings(COLUMNS, NUMBERS),
    h(
      "tbody",
      null,
      found.map((request) =>
        h(
          "tr",
          { title: request.id },
          h("td", null, time(request.receivedAt)),
          h("td", null, h("a", { href: link("requests", { refused, user: request.user }) }, who(request.user))),
          h("td", null, request.verb),
          h("td", null, request.what),
          h("td", { class: "quiet" }, request.namespace),
          h("td", null, request.name),
          h("td", { class: "number" }, String(request.code)),
          h("td", { class: "quiet" }, request.why),
          h("td", { class: "number" }, count(Math.round(request.milliseconds))),
          h("td", { class: "quiet" }, request.source),
        ),
      ),
    ),
  );
}
