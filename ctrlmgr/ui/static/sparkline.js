// A small line of how a number went.

import { s } from "./dom.js";

const WIDTH = 160;
const HEIGHT = 36;

const FEWEST = 20;

/** @param {number[]} values @param {string} label */
export function sparkline(values, label) {
  const most = Math.max(FEWEST, values.length);
  const top = Math.max(1, ...values);
  const x = (index) => WIDTH - (values.length - 1 - index) * (WIDTH / (most - 1));
  const y = (value) => HEIGHT - 2 - (value / top) * (HEIGHT - 5);
  const points = values.map((value, index) => `${x(index).toFixed(1)},${y(value).toFixed(1)}`);
  const line = points.join(" ");
  const area = points.length ? `${x(0).toFixed(1)},${HEIGHT} ${line} ${WIDTH},${HEIGHT}` : "";
  return s(
    "svg",
    {
      class: "sparkline",
      viewBox: `0 0 ${WIDTH} ${HEIGHT}`,
      preserveAspectRatio: "none",
      role: "img",
      "aria-label": label,
    },
    s("polygon", { points: area, class: "area" }),
    s("polyline", { points: line, class: "line" }),
  );
}
