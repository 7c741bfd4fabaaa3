// The way through time: a picture of all that happened, and a hand on it.

import { h, fill } from "./dom.js";
import { ask } from "./api.js";
import { change, current } from "./state.js";
import { clock, count, day, moment as exact } from "./format.js";
import { colour, learn } from "./colours.js";
import { latest } from "./latest.js";
import { Scale, bars, bubble as described, folds, named, ticks } from "./scrubber_picture.js";

const SMALLEST = 12;
const ZOOM = 1.6;

/**
 * @param {(error: unknown) => void} failed
 * @typedef {{at: number, head: number, live: boolean}} Moment
 */
export function scrubber(failed) {
  /** @type {Scale | null} */
  let scale = null;
  /** @type {Moment} */
  let moment = { at: 0, head: 0, live: true };
  let drawn = "";
  let told = -1;
  const hidden = new Set();

  const picture = h("div", { class: "picture" });
  const hand = h("div", { class: "hand" }, h("span", { class: "grip" }));
  const bubble = h("div", { class: "bubbles", hidden: true });
  const plot = h(
    "div",
    {
      class: "plot",
      role: "slider",
      tabindex: "0",
      "aria-label": "revision",
      "aria-valuemin": "1",
      onpointerdown: grab,
      onpointermove: hover,
      onpointerleave: () => {
        bubble.hidden = true;
      },
      onwheel: wheel,
    },
    picture,
    hand,
    bubble,
  );
  const axis = h("div", { class: "ticks" });
  const legend = h("div", { class: "legend" });
  const field = /** @type {HTMLInputElement} */ (
    h("input", {
      class: "revision",
      "aria-label": "revision or time",
      spellcheck: "false",
      autocomplete: "off",
      onkeydown: entered,
      onfocus: () => field.select(),
      oninput: () => fill(problem),
      onblur: () => {
        fill(problem);
        show();
      },
    })
  );
  const when = h("time", { class: "when" });
  const problem = h("span", { class: "problem", role: "alert" });
  const live = h(
    "button",
    {
      class: "live",
      onclick: () => change({ at: moment.live ? moment.at : null }),
      title: "follow the newest revision (l)",
    },
    h("i"),
    "live",
  );
  const back = h(
    "button",
    { title: "previous revision (←)", "aria-label": "previous revision", onclick: () => step(-1) },
    "‹",
  );
  const forth = h(
    "button",
    { title: "next revision (→)", "aria-label": "next revision", onclick: () => step(1) },
    "›",
  );
  const by = choice("by", [
    ["actor", "who"],
    ["resource", "what"],
  ]);
  const along = choice("axis", [
    ["time", "time"],
    ["revision", "revisions"],
  ]);
  const counting = h("span", { class: "quiet", "aria-live": "polite" });
  const whole = h("button", { class: "whole", onclick: () => zoom(null), title: "the whole log (0)" }, "whole log");
  const node = h(
    "section",
    { class: "scrubber", "aria-label": "time" },
    h(
      "div",
      { class: "controls" },
      h("div", { class: "position" }, back, field, forth, live, when, problem),
      legend,
      h("div", { class: "options" }, counting, whole, by, along),
    ),
    plot,
    axis,
  );

  function choice(name, options) {
    return h(
      "div",
      { class: "choice", role: "group", "aria-label": name },
      options.map(([value, label]) =>
        h(
          "button",
          { "data-name": name, "data-value": value, onclick: () => change({ [name]: value }, { replace: true }) },
          label,
        ),
      ),
    );
  }

  const load = latest(async (wanted) => {
    try {
      const { by: by_, axis: axis_, from, to } = wanted;
      const answer = await ask("timeline", {
        by: by_,
        axis: axis_,
        from,
        to,
        bars: Math.round(Math.min(300, Math.max(60, plot.clientWidth / 5))),
      });
      learn(by_, answer.series);
      scale = new Scale(answer, axis_);
      draw();
      const left = answer.counted < answer.head;
      if (left) drawn = "";
      fill(counting, left && `counted up to revision ${count(answer.counted)}, counting continues`);
    } catch (error) {
      drawn = "";
      failed(error);
    }
  });

  /** @param {Moment} now */
  async function update(now) {
    moment = now;
    const { params } = current();
    for (const button of node.querySelectorAll(".choice button")) {
      button.setAttribute("aria-pressed", String(params[button.dataset.name] === button.dataset.value));
    }
    live.setAttribute("aria-pressed", String(now.live));
    whole.hidden = !params.from && !params.to;
    const wanted = JSON.stringify([params.by, params.axis, params.from, params.to, params.to ? 0 : now.head]);
    show();
    if (told !== now.at) void tellTime((told = now.at));
    if (wanted === drawn) return;
    drawn = wanted;
    await load(params);
  }

  function draw() {
    if (!scale) return;
    fill(picture, bars(scale.picture, hidden, current().params.by), folds(scale));
    fill(axis, ticks(scale, plot.clientWidth));
    const { by: by_ } = current().params;
    const names = scale.picture.items.some((bar) => bar.counts.at(-1) > 0)
      ? [...scale.picture.series, ""]
      : scale.picture.series;
    fill(
      legend,
      names.map((name) =>
        h(
          "button",
          { class: hidden.has(name) ? "off" : "", title: name, onclick: () => toggle(name) },
          h("i", { class: `dot ${name ? colour(by_, name) : "other"}` }),
          named(name, by_),
        ),
      ),
    );
    show();
  }

  function toggle(name) {
    if (!hidden.delete(name)) hidden.add(name);
    draw();
  }

  function show() {
    if (document.activeElement !== field) field.value = moment.at ? String(moment.at) : "";
    plot.setAttribute("aria-valuenow", String(moment.at));
    plot.setAttribute("aria-valuemax", String(moment.head));
    if (!scale) return;
    const place = scale.place(moment.at);
    hand.style.left = `${place * 100}%`;
    hand.hidden = moment.at < scale.picture.from || moment.at > scale.picture.to;
  }

  const tellTime = latest(async (revision) => {
    try {
      const { recordedAt } = await ask("moment", { text: revision });
      fill(when, recordedAt ? `${day(recordedAt)} ${clock(recordedAt)}` : "");
      when.setAttribute("title", exact(recordedAt));
    } catch (error) {
      failed(error);
    }
  });

  const placeOf = (event) => {
    const box = plot.getBoundingClientRect();
    return Math.min(1, Math.max(0, (event.clientX - box.left) / box.width));
  };

  function grab(event) {
    if (!scale || event.button !== 0) return;
    plot.setPointerCapture(event.pointerId);
    const follow = (moved) => go(scale.revision(placeOf(moved)));
    const leave = () => {
      plot.removeEventListener("pointermove", follow);
      plot.removeEventListener("pointerup", leave);
      plot.removeEventListener("pointercancel", leave);
    };
    plot.addEventListener("pointermove", follow);
    plot.addEventListener("pointerup", leave);
    plot.addEventListener("pointercancel", leave);
    follow(event);
  }

  function hover(event) {
    const place = placeOf(event);
    const bar = scale?.bar(place);
    bubble.hidden = !bar;
    if (!scale || !bar) return;
    fill(bubble, described(scale.picture, bar, current().params.by));
    bubble.style.left = `${place * 100}%`;
    bubble.classList.toggle("flipped", place > 0.75);
  }

  function wheel(event) {
    event.preventDefault();
    zoom(event.deltaY < 0 ? 1 / ZOOM : ZOOM, placeOf(event));
  }

  /** Look closer (below 1) or at more (above); null shows the whole log. */
  function zoom(factor, place = scale?.place(moment.at) ?? 0.5) {
    if (factor === null || !scale) {
      change({ from: null, to: null }, { replace: true });
      return;
    }
    const { from, to } = scale.picture;
    const middle = scale.revision(place);
    const wide = Math.max(SMALLEST, Math.round((to - from + 1) * factor));
    if (wide >= moment.head) {
      change({ from: null, to: null }, { replace: true });
      return;
    }
    const share = (middle - from) / Math.max(1, to - from);
    const first = Math.max(1, Math.min(moment.head - wide + 1, Math.round(middle - share * wide)));
    change({ from: first, to: first + wide - 1 }, { replace: true });
  }

  /** Go to a revision. @param {number} revision */
  function go(revision) {
    const at = Math.min(moment.head, Math.max(1, revision));
    fill(problem);
    change({ at }, { replace: true });
  }

  /** @param {number} revisions */
  function step(revisions) {
    go(moment.at + revisions);
  }

  async function entered(event) {
    if (event.key !== "Enter") return;
    const text = field.value.trim().replaceAll(",", "");
    if (!text) return;
    try {
      const found = await ask("moment", { text });
      field.blur();
      go(found.revision);
    } catch (error) {
      fill(problem, error.message);
      if (error.needsToken) failed(error);
    }
  }

  return {
    node,
    update,
    step,
    go,
    zoom,
    follow: () => change({ at: moment.live ? moment.at : null }),
    edit: () => field.focus(),
    newest: () => change({ at: null }),
    title: () => (moment.live ? "" : `@${count(moment.at)}`),
  };
}
