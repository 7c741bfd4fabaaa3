// Elements, made by hand. Text only ever becomes text: nothing here reads markup, whatever an object is called.

const SVG = "http://www.w3.org/2000/svg";

/** @typedef {Node | string | number | null | undefined | false} Child */
/** @typedef {Record<string, unknown>} Attributes */

/**
 * Make an HTML element. Attributes that are functions listen (`onclick`), `true` is an attribute without a value,
 * null and false are none.
 * @param {string} tag @param {Attributes | null} [attributes] @param {...(Child | Child[])} children
 * @returns {HTMLElement}
 */
export function h(tag, attributes, ...children) {
  return /** @type {HTMLElement} */ (filled(document.createElement(tag), attributes, children));
}

/**
 * Make an SVG element in the same way.
 * @param {string} tag @param {Attributes | null} [attributes] @param {...(Child | Child[])} children
 * @returns {SVGElement}
 */
export function s(tag, attributes, ...children) {
  return /** @type {SVGElement} */ (filled(document.createElementNS(SVG, tag), attributes, children));
}

/**
 * Make the head of a table; the columns among `numbers` are aligned as such.
 * @param {string[]} names @param {Set<string>} numbers
 */
export function headings(names, numbers) {
  const row = names.map((name) => h("th", { class: numbers.has(name) && "number" }, name));
  return h("thead", null, h("tr", null, row));
}

/** Put other children into an element. @param {Element} node @param {...(Child | Child[])} children */
export function fill(node, ...children) {
  node.replaceChildren(...nodes(children));
}

function filled(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (typeof value === "function") node.addEventListener(name.slice(2), value);
    else if (value !== null && value !== undefined && value !== false)
      node.setAttribute(name, value === true ? "" : String(value));
  }
  node.append(...nodes(children));
  return node;
}

function nodes(children) {
  return children
    .flat(2)
    .filter((child) => child !== null && child !== undefined && child !== false)
    .map((child) => (child instanceof Node ? child : String(child)));
}
