// The cluster at the moment that is looked at: its nodes, what is on each, and what waits and why.

import { h, fill } from "./dom.js";
import { ask } from "./api.js";
import { link } from "./state.js";
import { count } from "./format.js";
import { unseen } from "./unseen.js";

export function cluster() {
  const node = h("div", { class: "cluster" });
  let shown = -1;

  async function update(params, moment) {
    if (moment.at === shown) return;
    const found = await ask("cluster", { at: moment.at });
    shown = moment.at;
    if (!found.nodes.length && !found.waits) {
      fill(node, moment.unseen ? unseen(moment) : nothing());
      return;
    }
    fill(node, found.waits ? waiting(found) : null, h("div", { class: "grid" }, found.nodes.map(machine)));
  }

  return { node, update };
}

function nothing() {
  return h(
    "div",
    { class: "empty" },
    h("h2", null, "No nodes and no pending pods"),
    h("p", null, "Start simulated nodes with ", h("code", null, "ctrlmgr serve --nodes 3"), "."),
  );
}

function waiting(found) {
  return h(
    "div",
    { class: "card scroll waiting" },
    h("h2", null, `${count(found.waits)} waiting for a node`),
    h(
      "table",
      null,
      h(
        "tbody",
        null,
        found.waiting.map((pod) =>
          h(
            "tr",
            null,
            h("td", null, place(pod)),
            h("td", { class: "quiet" }, pod.nominated ? `preemption on ${pod.nominated}. ` : "", pod.why),
          ),
        ),
      ),
    ),
  );
}

function machine(node) {
  const well = node.ready === "True";
  const said = well ? (node.unschedulable ? "cordoned" : "ready") : node.ready === "False" ? "not ready" : "no report";
  const more = node.count - node.pods.length;
  return h(
    "div",
    { class: "card node" },
    h(
      "h2",
      null,
      h("a", { href: link("object", { resource: "nodes", namespace: "", name: node.name }) }, node.name),
      " ",
      h("span", { class: `badge ${well ? (node.unschedulable ? "modified" : "added") : "deleted"}` }, said),
    ),
    h(
      "p",
      { class: "quiet" },
      [node.zone, share("cpu", node), share("memory", node), `${count(node.count)} pods`].filter(Boolean).join(" · "),
    ),
    node.taints.length ? h("p", { class: "quiet taints" }, node.taints.join(", ")) : null,
    h(
      "p",
      { class: "pods" },
      node.pods.map(chip),
      more > 0 ? h("span", { class: "quiet" }, `and ${count(more)}`) : null,
    ),
  );
}

function share(name, node) {
  const held = node.allocatable[name];
  return held ? `${name} ${Math.round((100 * node.used[name]) / held)} %` : "";
}

function chip(pod) {
  const well = pod.ready || pod.state === "Succeeded";
  const kind = pod.state === "Failed" ? "deleted" : well ? "added" : "modified";
  const text = `${pod.name}${pod.state === "Running" ? "" : ` ${pod.state}`}`;
  return [h("a", { class: `badge ${kind}`, href: address(pod), title: `${pod.namespace}/${pod.name}` }, text), " "];
}

function place(pod) {
  return h("a", { href: address(pod) }, `${pod.namespace}/${pod.name}`);
}

function address(pod) {
  return link("object", { resource: "pods", namespace: pod.namespace, name: pod.name });
}
