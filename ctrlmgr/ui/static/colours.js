// Which name has which colour: the same everywhere on the page, for as long as it is open.

const SLOTS = 8;
/** @typedef {"actor" | "resource" | "holder"} Sort */
/** @type {Record<Sort, Map<string, number>>} */
const slots = { actor: new Map(), resource: new Map(), holder: new Map() };

/**
 * Give names of a sort a colour of their own, those first that come first.
 * @param {Sort} sort @param {string[]} names
 */
export function learn(sort, names) {
  const known = slots[sort];
  for (const name of names) if (!known.has(name) && known.size < SLOTS) known.set(name, known.size);
}

/** Return what is another one whenever more names have colours. */
export function known() {
  return Object.values(slots).reduce((sum, each) => sum + each.size, 0);
}

/** Return the class that has a name's colour. @param {Sort} sort @param {string} name */
export function colour(sort, name) {
  const slot = slots[sort].get(name);
  return slot === undefined ? "other" : `c${slot}`;
}
