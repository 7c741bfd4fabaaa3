// Where the nodes of a graph go: in layers from left to right, what led to something left of it; pure functions.
//
// An edge that spans several layers is led through each of them, so that it does not run below a node. Within a layer
// the order is that of the neighbours (a few barycentre sweeps), and the heights are those nearest to the neighbours'
// that leave room for everybody (isotonic regression).

const GAP = 46;
const SEPARATION = 14;
const SWEEPS = 8;
const THREAD = 6;

/**
 * @typedef {{id: string, width: number, height: number}} Sized
 * @typedef {{id: string, width: number, height: number, layer: number, x: number, y: number,
 *            before: Spot[], after: Spot[]}} Spot
 * @typedef {{from: string, to: string, through: Spot[]}} Led
 * @typedef {{width: number, height: number, spots: Map<string, Spot>, edges: Led[]}} Layout
 */

/**
 * @param {Sized[]} nodes @param {Array<[string, string]>} edges @param {string} root
 * @returns {Layout}
 */
export function layout(nodes, edges, root) {
  const layers = layersOf(nodes, edges, root);
  const lowest = Math.min(...layers.values());
  /** @type {Map<string, Spot>} */
  const spots = new Map(nodes.map((node) => [node.id, spot(node, layers.get(node.id) - lowest)]));
  const columns = Array.from({ length: Math.max(...layers.values()) - lowest + 1 }, () => []);
  for (const each of spots.values()) columns[each.layer].push(each);
  const led = edges
    .filter(([from, to]) => spots.has(from) && spots.has(to))
    .map(([from, to]) => lead(spots.get(from), spots.get(to), columns));
  order(columns);
  const width = across(columns);
  const height = down(columns);
  return { width, height, spots, edges: led };
}

function spot({ id, width, height }, layer) {
  return { id, width, height, layer, x: 0, y: 0, before: [], after: [] };
}

/** How far from the root each node is: as far as the longest way, so that every edge leads to the right. */
function layersOf(nodes, edges, root) {
  const after = new Map(nodes.map((node) => [node.id, []]));
  const before = new Map(nodes.map((node) => [node.id, []]));
  for (const [from, to] of edges) {
    after.get(from)?.push(to);
    before.get(to)?.push(from);
  }
  const causes = longest(root, before);
  const effects = longest(root, after);
  return new Map(nodes.map(({ id }) => [id, causes.has(id) && id !== root ? -causes.get(id) : (effects.get(id) ?? 0)]));
}

function longest(root, onward) {
  const distance = new Map([[root, 0]]);
  let moved = true;
  for (let round = 0; moved && round <= onward.size; round += 1) {
    moved = false;
    for (const [id, far] of [...distance]) {
      for (const next of onward.get(id) ?? []) {
        if ((distance.get(next) ?? -1) > far) continue;
        distance.set(next, far + 1);
        moved = true;
      }
    }
  }
  return distance;
}

/** Lead an edge through the layers that it passes. */
function lead(from, to, columns) {
  const through = [];
  let last = from;
  for (let layer = from.layer + 1; layer < to.layer; layer += 1) {
    const thread = spot({ id: "", width: 0, height: THREAD }, layer);
    columns[layer].push(thread);
    join(last, thread);
    through.push(thread);
    last = thread;
  }
  join(last, to);
  return { from: from.id, to: to.id, through };
}

function join(from, to) {
  from.after.push(to);
  to.before.push(from);
}

function order(columns) {
  const number = () =>
    columns.forEach((column) =>
      column.forEach((each, index) => {
        each.y = index;
      }),
    );
  const sweep = (column, side) => {
    const wanted = new Map(
      column.map((each) => [each, each[side].length ? mean(each[side].map((other) => other.y)) : each.y]),
    );
    column.sort((a, b) => wanted.get(a) - wanted.get(b));
    column.forEach((each, index) => {
      each.y = index;
    });
  };
  number();
  for (let round = 0; round < SWEEPS; round += 1) {
    columns.forEach((column) => sweep(column, "before"));
    [...columns].reverse().forEach((column) => sweep(column, "after"));
  }
}

function across(columns) {
  let x = 0;
  for (const column of columns) {
    const wide = Math.max(...column.map((each) => each.width));
    for (const each of column) each.x = x + wide / 2;
    x += wide + GAP;
  }
  return x - GAP;
}

/** Give everybody a height; return that of the whole. */
function down(columns) {
  for (const column of columns)
    settle(
      column,
      column.map((_, index) => index * 60),
    );
  for (let round = 0; round < SWEEPS; round += 1) {
    for (const column of round % 2 ? [...columns].reverse() : columns) {
      settle(
        column,
        column.map((each) =>
          mean(
            [...each.before, ...each.after].map((other) => other.y),
            each.y,
          ),
        ),
      );
    }
  }
  const all = columns.flat();
  const top = Math.min(...all.map((each) => each.y - each.height / 2));
  for (const each of all) each.y -= top;
  return Math.max(...all.map((each) => each.y + each.height / 2));
}

/** Put a column as near to the wanted heights as its order and the room that each takes allow. */
function settle(column, wanted) {
  const offsets = [];
  column.forEach((each, index) => {
    const above = column[index - 1];
    offsets.push(above ? offsets[index - 1] + (above.height + each.height) / 2 + SEPARATION : 0);
  });
  /** @type {Array<{sum: number, size: number}>} */
  const blocks = [];
  wanted.forEach((height, index) => {
    blocks.push({ sum: height - offsets[index], size: 1 });
    while (blocks.length > 1 && average(blocks.at(-2)) > average(blocks.at(-1))) {
      const last = blocks.pop();
      blocks.at(-1).sum += last.sum;
      blocks.at(-1).size += last.size;
    }
  });
  let index = 0;
  for (const block of blocks) {
    for (let member = 0; member < block.size; member += 1, index += 1)
      column[index].y = average(block) + offsets[index];
  }
}

const average = (block) => block.sum / block.size;
const mean = (values, otherwise = 0) =>
  values.length ? values.reduce((sum, each) => sum + each, 0) / values.length : otherwise;
