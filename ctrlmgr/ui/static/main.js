// The page: where one is, which moment is looked at, and what is shown of it.

import { h, fill } from "./dom.js";
import { Refused, Unreachable, ask, takeToken } from "./api.js";
import { current, go, land, link, listen } from "./state.js";
import { listen as listenToKeys, help } from "./keyboard.js";
import { door } from "./door.js";
import { count } from "./format.js";
import { latest } from "./latest.js";
import { scrubber } from "./scrubber.js";
import { change } from "./view_change.js";
import { cluster } from "./view_cluster.js";
import { failures } from "./view_failures.js";
import { health } from "./view_health.js";
import { leaders } from "./view_leaders.js";
import { object } from "./view_object.js";
import { objects } from "./view_objects.js";
import { queues } from "./view_queues.js";
import { requests } from "./view_requests.js";
import { timeline } from "./view_timeline.js";

/**
 * @typedef {import("./scrubber.js").Moment} Moment
 * @typedef {{node: HTMLElement, update: (params: Record<string, string>, moment: Moment) => Promise<void>,
 *            always?: boolean, filter?: () => void, drawn?: () => void}} View
 *   `always`: it shows what goes on now, not the log; `drawn` is told when the bars on top are there
 */

/** @type {Record<string, () => View>} */
const VIEWS = { failures, timeline, objects, object, change, queues, leaders, requests, health, cluster };
const MENU = [
  ["failures", "Failures"],
  ["timeline", "Timeline"],
  ["objects", "Objects"],
  ["queues", "Queues"],
  ["leaders", "Leaders"],
  ["health", "Health"],
  ["requests", "Requests"],
  ["cluster", "Cluster"],
];
const WITHIN = { object: "objects", change: "timeline" };
const EVERY = 1000;

const menu = h("nav", { "aria-label": "views" });
const pulse = h("span", { class: "pulse", title: "the server answers" });
const banner = h("p", { class: "banner", role: "alert", hidden: true });
const heading = h("h1", { class: "aside" });
const room = h("div");
const failing = h("b", { class: "failing", hidden: true, "aria-label": "failing reconciles" });
const stage = h("main", null, room);
const time = scrubber(failed);

let status = null;
let shown = "";
/** @type {View} */
let view;
let closed = false;

const update = latest(async () => {
  if (!status || closed) return;
  const { view: name, params } = current();
  const known = name in VIEWS ? name : "timeline";
  if (known !== shown) open(known);
  if (known in WITHIN) heading.remove(); // those views have headings of their own
  else stage.prepend(heading);
  fill(heading, MENU.find(([each]) => each === known)?.[1]);
  const head = status.head;
  const at = params.at ? Math.min(Number(params.at) || head, head) : head;
  const moment = { at, head, live: !params.at, unseen: status.unseen };
  document.title = ["ctrlmgr", known, params.name, time.title()].filter(Boolean).join(" · ");
  time.node.hidden = Boolean(view.always) || !status.history;
  for (const item of menu.children)
    item.toggleAttribute("aria-current", item.dataset.view === (WITHIN[known] ?? known));
  for (const item of menu.children) item.setAttribute("href", link(item.dataset.view, {}));
  fill(failing, status.failing ? count(status.failing) : "");
  failing.hidden = !status.failing;
  try {
    if (!status.history && !view.always) {
      fill(room, notice("No history available", status.reason));
      return;
    }
    await Promise.all([time.node.hidden ? null : time.update(moment), view.update(params, moment)]);
    view.drawn?.();
    if (view.node.parentNode !== room) fill(room, view.node);
    stage.dataset.at = String(at);
  } catch (error) {
    failed(error);
  }
});

/** @param {string} name */
function open(name) {
  shown = name;
  view = VIEWS[name]();
  fill(room, view.node);
}

const TITLES = { 403: "Access denied", 404: "Not found" };

function notice(title, text) {
  return h("div", { class: "empty" }, h("h2", null, title), h("p", null, text));
}

/** Say what went wrong, where one can do something about it. @param {unknown} error */
function failed(error) {
  if (error instanceof Refused && error.needsToken) {
    closed = true;
    heading.remove(); // the door has its own
    document.body.classList.add("closed");
    fill(room, door(error.message, enter));
  } else if (error instanceof Refused) {
    fill(room, notice(TITLES[error.code] ?? "The server refused the request", error.message));
  } else if (error instanceof Unreachable) {
    offline(true);
  } else {
    throw error;
  }
}

function enter() {
  closed = false;
  shown = "";
  document.body.classList.remove("closed");
  void look();
}

const GONE =
  "The server does not answer. The page shows the last known state and retries every second. " +
  "If it was stopped, `ctrlmgr serve` starts it.";

/** @param {boolean} is */
function offline(is) {
  banner.hidden = !is;
  document.body.classList.toggle("offline", is);
  pulse.classList.toggle("off", is);
  fill(banner, is ? GONE : "");
}

/** Look how far the log has got, and show what is new. */
async function look() {
  try {
    const isFirst = !status;
    status = await ask("status");
    if (isFirst) land(status.failing ? "failures" : "timeline");
    offline(false);
    await update();
  } catch (error) {
    failed(error);
  }
}

async function watch() {
  if (!document.hidden && !closed) await look();
  setTimeout(watch, EVERY);
}

function build() {
  fill(
    menu,
    MENU.map(([name, label]) =>
      h("a", { "data-view": name, href: link(name, {}) }, label, name === "failures" && failing),
    ),
  );
  document.body.append(
    h(
      "header",
      { class: "top" },
      h("a", { class: "brand", href: "#/" }, h("img", { src: "icon.svg", alt: "", width: 22, height: 22 }), "ctrlmgr"),
      menu,
      h("span", { class: "grow" }),
      pulse,
      h("button", { class: "keys-button", onclick: help, title: "keys (?)", "aria-label": "keys" }, "?"),
    ),
    banner,
    time.node,
    stage,
  );
}

function keys() {
  const views = Object.fromEntries(MENU.slice(1).map(([name], index) => [String(index + 1), () => go(link(name, {}))]));
  listenToKeys({
    ...views,
    f: () => go(link("failures", {})),
    "?": help,
    l: time.follow,
    r: time.edit,
    "/": () => view.filter?.(),
    ArrowLeft: () => time.step(-1),
    ArrowRight: () => time.step(1),
    "Shift+ArrowLeft": () => time.step(-10),
    "Shift+ArrowRight": () => time.step(10),
    Home: () => time.go(1),
    End: time.newest,
    "+": () => time.zoom(1 / 1.6),
    "-": () => time.zoom(1.6),
    0: () => time.zoom(null),
  });
}

takeToken();
build();
fill(room, notice("Loading", "Waiting for the first answer of the server."));
keys();
listen(() => void update());
document.addEventListener("visibilitychange", () => document.hidden || void look());
void watch();
