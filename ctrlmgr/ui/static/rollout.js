// The rollout of a workload as a timeline: which pod came and went when, and what everything waited for.

import { h, fill } from "./dom.js";
import { ask } from "./api.js";
import { diff, revisionLink, time } from "./changes.js";
import { count, who } from "./format.js";

const ROLLED = new Set(["deployments.apps", "statefulsets.apps", "daemonsets.apps"]);
const FEW = 12;

/** A card for objects that have rollouts; hidden for others. */
export function rollout() {
  const node = h("section", { class: "card rollout-card", hidden: true });
  let all = false;
  let shownOf = "";

  async function update(place, moment) {
    node.hidden = true;
    if (!ROLLED.has(place.resource)) return;
    const told = await ask("rollout", { ...place, at: moment.at });
    const of = `${JSON.stringify(place)}@${told.revision}`;
    [all, shownOf] = [all && of === shownOf, of];
    if (!told.steps) return;
    node.hidden = false;
    show(told);
  }

  function show(told) {
    const late = all ? told.steps : told.steps.slice(0, FEW);
    const hidden = told.steps.length - late.length;
    const more = () => {
      all = true;
      show(told);
    };
    fill(
      node,
      h(
        "header",
        { class: "began" },
        h("h2", null, "Rollout"),
        h(
          "span",
          { class: `badge ${told.complete ? "added" : "modified"}` },
          told.complete ? "complete" : "in progress",
        ),
        h("span", null, "since ", revisionLink(told.revision), ` by ${who(told.actor)}`),
        h("span", { class: "quiet" }, time(told.beganAt)),
      ),
      told.edits.length > 0 && diff(told.edits),
      h("ol", { class: "steps" }, late.map(entries)),
      hidden > 0 && h("button", { class: "more", onclick: more }, `${count(hidden)} more steps`),
      !told.complete && h("p", { class: "waits" }, `The rollout waits for ${told.waitsFor || "its controller"}.`),
    );
  }

  return { node, update };
}

/** The items of a step: the wait before it, if any, and the step itself. */
function entries(step) {
  const seconds = (step.waited / 1e6).toFixed(1);
  return [
    step.waitedFor && h("li", { class: "waited" }, `waited ${seconds} s for ${step.waitedFor}`),
    h("li", { class: "step" }, time(step.at), " ", revisionLink(step.revision), " ", h("span", null, step.what)),
  ];
}
