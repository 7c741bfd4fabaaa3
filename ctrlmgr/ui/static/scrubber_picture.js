// The picture along which one travels: bars of how much happened, and where in them a revision is.

import { h, s, fill } from "./dom.js";
import { clock, count, day, duration, plural, who } from "./format.js";
import { colour } from "./colours.js";

/**
 * @typedef {{index: number, from: number, to: number, at: number, counts: number[]}} Bar
 * @typedef {{head: number, counted: number, from: number, to: number, start: number, end: number, bars: number,
 *            series: string[], items: Bar[],
 *            folds: Array<{at: number, width: number, left: number, pause: number}>}} Picture
 */

export const HEIGHT = 84;
const WIDTH = 1000;
const TICKS = 7;
const LABEL = 150;
const GAP = 0.22;

/** Where things are in a picture: between revisions and places from 0 to 1. */
export class Scale {
  /** @param {Picture} picture @param {string} axis */
  constructor(picture, axis) {
    this.picture = picture;
    this.inTime = axis === "time";
  }

  /** The place of a revision. @param {number} revision */
  place(revision) {
    const { start, end, bars, items } = this.picture;
    if (!this.inTime) return Math.min(1, Math.max(0, (revision - start + 0.5) / (end - start)));
    const bar = items.findLast((each) => each.from <= revision);
    if (!bar) return 0;
    const within = Math.min(1, (revision - bar.from + 0.5) / (bar.to - bar.from + 1));
    return (bar.index + within) / bars;
  }

  /** The revision at a place. @param {number} place */
  revision(place) {
    const { start, end, from, to, bars, items } = this.picture;
    const inside = Math.min(1, Math.max(0, place));
    if (!this.inTime) return Math.min(to, Math.max(from, Math.floor(start + inside * (end - start))));
    const bar = items.findLast((each) => each.index <= inside * bars);
    if (!bar) return from;
    return Math.min(bar.to, bar.from + Math.floor((inside * bars - bar.index) * (bar.to - bar.from + 1)));
  }

  /** The bar at a place, if something happened there. @param {number} place */
  bar(place) {
    const index = Math.floor(place * this.picture.bars);
    return this.picture.items.find((each) => each.index === index);
  }

  /** When it was at a place. @param {number} place */
  time(place) {
    const { start, end, bars, items } = this.picture;
    if (this.inTime) return unfolded(start + place * (end - start), this.picture.folds);
    return (items.findLast((each) => each.index <= place * bars) ?? items[0])?.at ?? 0;
  }
}

/**
 * The time of a point on an axis whose long pauses are folded. @param {number} point
 * @param {Array<{at: number, left: number}>} folds  where each fold ends, and the time that is left out before that
 */
function unfolded(point, folds) {
  return folds.reduce((sum, fold) => (fold.at <= point ? sum + fold.left : sum), point);
}

/** The marks of folded pauses. @param {Scale} scale */
export function folds(scale) {
  const { start, end, folds: found } = scale.picture;
  if (!scale.inTime) return [];
  return found.map((fold) => {
    const text = `no events for ${duration(fold.pause / 1e6)}`;
    const node = h("span", { class: "fold", title: text }, h("span", { class: "aside" }, text));
    node.style.left = `${(100 * (fold.at - fold.width / 2 - start)) / (end - start)}%`;
    return node;
  });
}

/** Draw the bars. @param {Picture} picture @param {Set<string>} hidden  series that are left out @param {string} by */
export function bars(picture, hidden, by) {
  const names = [...picture.series, ""];
  const shown = names.map((name) => !hidden.has(name));
  const heights = picture.items.map((bar) =>
    bar.counts.reduce((sum, each, index) => sum + (shown[index] ? each : 0), 0),
  );
  const top = Math.max(1, ...heights);
  const step = WIDTH / picture.bars;
  const paths = names.map(() => []);
  picture.items.forEach((bar, number) => {
    let y = HEIGHT;
    const tall = Math.sqrt(heights[number] / top) * (HEIGHT - 8);
    bar.counts.forEach((events, index) => {
      if (!events || !shown[index]) return;
      const part = (events / heights[number]) * Math.max(tall, 2);
      y -= part;
      paths[index].push(rectangle(bar.index * step + (step * GAP) / 2, y, step * (1 - GAP), part));
    });
  });
  return s(
    "svg",
    { class: "bars", viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none", "aria-hidden": "true" },
    paths.map(
      (path, index) =>
        path.length > 0 && s("path", { d: path.join(""), class: names[index] ? colour(by, names[index]) : "other" }),
    ),
  );
}

/** A part of a path. @param {...number} numbers  where it is, how wide and how high */
function rectangle(...numbers) {
  const [x, y, width, height] = numbers.map((number) => number.toFixed(2));
  return `M${x} ${y}h${width}v${height}h-${width}z`;
}

/** The moments below the bars, as many as there is room for. @param {Scale} scale @param {number} width in pixels */
export function ticks(scale, width) {
  const { picture } = scale;
  if (!picture.items.length) return [];
  const number = Math.max(1, Math.min(TICKS, Math.floor(width / LABEL)));
  let lastDay = "";
  return Array.from({ length: number }, (_, index) => {
    const place = (index + 0.5) / number;
    const at = scale.time(place);
    const today = day(at);
    const label = scale.inTime || !at ? clock(at) : `${count(scale.revision(place))}`;
    const more = scale.inTime ? (today === lastDay ? "" : today) : clock(at);
    lastDay = today;
    const node = h("span", null, label, more && h("small", null, more));
    node.style.left = `${place * 100}%`;
    return node;
  });
}

/** What happened in a bar. @param {Picture} picture @param {Bar} bar @param {string} by */
export function bubble(picture, bar, by) {
  const node = h("div", { class: "bubble" });
  const names = [...picture.series, ""];
  const rows = bar.counts
    .map((events, index) => ({ events, name: names[index] }))
    .filter((row) => row.events >= 0.5)
    .sort((a, b) => b.events - a.events);
  fill(
    node,
    h(
      "strong",
      null,
      bar.from === bar.to ? `revision ${count(bar.from)}` : `revisions ${count(bar.from)}–${count(bar.to)}`,
    ),
    h("span", { class: "quiet" }, `${day(bar.at)} ${clock(bar.at)}`),
    rows.map((row) =>
      h(
        "span",
        { class: "row" },
        h("i", { class: `dot ${row.name ? colour(by, row.name) : "other"}` }),
        named(row.name, by),
        h("b", null, count(Math.round(row.events))),
      ),
    ),
  );
  return node;
}

/** @param {string} name @param {string} by */
export function named(name, by) {
  if (!name) return "others";
  return by === "actor" ? who(name) : plural(name);
}
