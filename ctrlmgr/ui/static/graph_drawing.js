// The picture of why: events as cards, reconciles as pills between them, time from left to right.

import { h, s } from "./dom.js";
import { count, moment, placed, plural, who } from "./format.js";
import { layout } from "./graph_layout.js";
import { link } from "./state.js";
import { colour } from "./colours.js";
import { outcome } from "./changes.js";

const MARGIN = 20;
const MANY = 40;
const SMALLEST = 0.62;
const TALLEST = 560;
const CARD = { width: 196, height: 76 };
const SLIM = { width: 196, height: 42 };
const PILL = { width: 176, height: 42 };
const LETTER = 6.7;
const NAMED = 2;

/**
 * @param {{root: string, nodes: any[], edges: Array<[string, string]>}} graph
 * @param {(run: any) => void} chosen  told of a reconcile that was clicked
 */
export function drawing(graph, chosen) {
  const card = graph.nodes.length > MANY ? SLIM : CARD;
  const sized = graph.nodes.map((node) => ({ id: node.id, ...(isRun(node) ? PILL : card) }));
  const laid = layout(sized, graph.edges, graph.root);
  const nodes = graph.nodes.map((node) =>
    isRun(node)
      ? pill(node, laid.spots.get(node.id), chosen)
      : event(node, laid.spots.get(node.id), node.id === graph.root),
  );
  const picture = /** @type {SVGSVGElement} */ (
    s(
      "svg",
      { class: "graph", role: "group", "aria-label": "causes and effects" },
      s(
        "g",
        { class: "edges" },
        laid.edges.map((edge) => line(edge, laid.spots)),
      ),
      nodes,
    )
  );
  return window_(picture, laid, laid.spots.get(graph.root));
}

const isRun = (node) => node.id.startsWith("r") || node.inferred;

function line({ from, to, through }, spots) {
  const start = spots.get(from);
  const end = spots.get(to);
  const points = [
    [start.x + start.width / 2, start.y],
    ...through.map((each) => [each.x, each.y]),
    [end.x - end.width / 2 - 5, end.y],
  ];
  const path = points.slice(1).map(([x, y], index) => {
    const [lastX, lastY] = points[index];
    const middle = (lastX + x) / 2;
    return `C${middle} ${lastY} ${middle} ${y} ${x} ${y}`;
  });
  const [tipX, tipY] = points.at(-1);
  return [
    s("path", { class: "edge", d: `M${points[0].join(" ")}${path.join("")}`, "data-from": from, "data-to": to }),
    s("path", { class: "tip", d: `M${tipX} ${tipY - 4}l6 4l-6 4z` }),
  ];
}

function event(node, spot, isRoot) {
  const { width, height } = spot;
  const untold = node.compacted ? "compacted" : node.forbidden ? "access denied" : "";
  const many = node.alike?.length ?? 0;
  const name = untold || (many ? several(node) : placed(node));
  const said = (node.said ?? []).join(", ");
  const rows = [
    s("text", { class: "kind", x: 14, y: 18 }, untold ? "event" : cut(plural(node.resource), 118)),
    s("text", { class: "revision", x: width - 12, y: 18 }, count(node.revision)),
    s("text", { class: "name", x: 14, y: 34 }, cut(name, width - 26)),
    height > SLIM.height && said && s("text", { class: "said", x: 14, y: 50 }, cut(said, width - 26)),
    height > SLIM.height &&
      !untold &&
      s("text", { class: "by", x: 26, y: 66 }, cut(who(node.actor), width - 40)),
    height > SLIM.height &&
      !untold &&
      s("circle", { class: `dot ${colour("actor", node.actor)}`, cx: 18, cy: 62, r: 3.5 }),
  ];
  const title = untold
    ? untold
    : `${node.type} ${node.resource} ${name}\nby ${node.actor} (${node.userAgent})\n${moment(node.recordedAt)}` +
      (said && `\n${said}`) +
      (many ? node.alike.map((each) => `\n${each.revision} ${each.name}`).join("") : "");
  const shape = [
    s("title", null, title),
    s("rect", { class: "box", width, height, rx: 8 }),
    s("path", {
      class: `edgemark ${(node.type ?? "").toLowerCase()}`,
      d: `M8 0h-0a8 8 0 0 0-8 8v${height - 16}a8 8 0 0 0 8 8h-4v-${height}z`,
    }),
    rows,
    rest(node, spot),
  ];
  const at = `translate(${spot.x - width / 2} ${spot.y - height / 2})`;
  if (untold) return s("g", { class: "event compacted", transform: at }, shape);
  return s(
    "a",
    {
      class: isRoot ? "event root" : "event",
      href: link("change", { at: node.revision, run: null }),
      transform: at,
      "data-node": node.id,
      "data-alike": many ? node.alike.map((each) => each.revision).join(" ") : null,
      "aria-label": `revision ${node.revision}, ${node.type} ${node.resource} ${name}`,
    },
    shape,
  );
}

/** How several events that are alike are called: how many, and the first of them. */
function several({ alike, resource }) {
  const names = [...new Set(alike.map((each) => each.name))];
  if (names.length === 1) return `${names[0]}, ${count(alike.length)} times`;
  const rest = names.length > NAMED ? ` … +${count(names.length - NAMED)}` : "";
  return `${count(names.length)} ${plural(resource)}: ${names.slice(0, NAMED).join(", ")}${rest}`;
}

function pill(run, spot, chosen) {
  const { width, height } = spot;
  const bad = run.outcome && run.outcome !== "ok" && run.outcome !== "requeued";
  const choose = (happened) => {
    if (happened.type === "keydown" && happened.key !== "Enter" && happened.key !== " ") return;
    happened.preventDefault();
    chosen(run);
  };
  return s(
    "g",
    {
      class: bad ? "run bad" : run.inferred ? "run inferred" : "run",
      transform: `translate(${spot.x - width / 2} ${spot.y - height / 2})`,
      tabindex: 0,
      role: "button",
      "data-node": run.id,
      onclick: choose,
      onkeydown: choose,
    },
    s("title", null, run.inferred ? guessed(run) : `${said(run)}, ${outcome(run)}`),
    s("rect", { class: "box", width, height, rx: height / 2 }),
    s("text", { class: "name", x: width / 2, y: 18 }, cut(isAdmission(run) ? run.key : run.controller, width - 28)),
    s(
      "text",
      { class: "by", x: width / 2, y: 33 },
      (run.alike?.length ? `${count(run.alike.length)} × ` : "") +
        (run.inferred ? "inferred" : outcome(run)) + (run.attempt > 1 ? ` · attempt ${run.attempt}` : ""),
    ),
    rest(run, spot),
  );
}

/** What would hang from a node if there were room. */
function rest(node, { width, height }) {
  return (
    node.hidden > 0 && s("text", { class: "hidden", x: width / 2, y: height + 13 }, `and ${count(node.hidden)} more`)
  );
}

function cut(text, room) {
  const most = Math.floor(room / LETTER);
  return text.length > most ? `${text.slice(0, most - 1)}…` : text;
}

/** Let one move about in a picture that may be larger than its place. */
function window_(picture, laid, root) {
  const wide = laid.width + 2 * MARGIN;
  const high = laid.height + 2 * MARGIN;
  const place = h("div", { class: "window" });
  let scale = 1;
  let x = 0;
  let y = 0;
  const show = () =>
    picture.setAttribute("viewBox", `${x} ${y} ${place.clientWidth / scale} ${place.clientHeight / scale}`);
  const clamp = (value, low, top) => Math.min(Math.max(value, Math.min(low, top)), Math.max(low, top));
  const fit = () => {
    const room = place.clientWidth || 900;
    scale = clamp(room / wide, SMALLEST, 1);
    place.style.height = `${Math.min(TALLEST, high * scale)}px`;
    const seenWide = room / scale;
    const seenHigh = place.clientHeight / scale;
    x =
      wide <= seenWide
        ? -MARGIN - (seenWide - wide) / 2
        : clamp(root.x - seenWide / 2, -MARGIN, laid.width + MARGIN - seenWide);
    y = high <= seenHigh + 1 ? -MARGIN : clamp(root.y - seenHigh / 2, -MARGIN, laid.height + MARGIN - seenHigh);
    show();
  };
  const zoom = (factor) => {
    const [oldWide, oldHigh] = [place.clientWidth / scale, place.clientHeight / scale];
    scale = clamp(scale * factor, 0.2, 2.5);
    x += (oldWide - place.clientWidth / scale) / 2;
    y += (oldHigh - place.clientHeight / scale) / 2;
    show();
  };
  place.append(
    picture,
    h(
      "div",
      { class: "tools" },
      h("button", { onclick: () => zoom(1.3), "aria-label": "closer" }, "+"),
      h("button", { onclick: () => zoom(1 / 1.3), "aria-label": "farther" }, "−"),
      h("button", { onclick: fit, "aria-label": "fit" }, "fit"),
    ),
  );
  picture.addEventListener("pointerdown", (down) => {
    if (down.button !== 0) return;
    let last = down;
    const move = (moved) => {
      x -= (moved.clientX - last.clientX) / scale;
      y -= (moved.clientY - last.clientY) / scale;
      last = moved;
      show();
    };
    const leave = () => {
      removeEventListener("pointermove", move);
      removeEventListener("pointerup", leave);
    };
    addEventListener("pointermove", move);
    addEventListener("pointerup", leave);
  });
  picture.addEventListener("wheel", (turned) => {
    if (!turned.ctrlKey && !turned.metaKey) return;
    turned.preventDefault();
    zoom(turned.deltaY < 0 ? 1.15 : 1 / 1.15);
  });
  new ResizeObserver(fit).observe(place);
  return place;
}

/** Whether it is no reconcile, but what changed a write on its way: a webhook, or a plugin of an app. */
function isAdmission(run) {
  return run.controller === "admission";
}

/** What is said of a reconcile that was not recorded, but inferred. */
function guessed(run) {
  const causes = run.because.map((each) => `\n${each.revision}: ${each.reason}`);
  return `inferred: by ${run.controller}, for ${run.reason || "what you may not see"}${causes.join("")}`;
}

function said(run) {
  return isAdmission(run) ? `changed during admission by ${run.key}` : `reconcile of ${run.key} by ${run.controller}`;
}
