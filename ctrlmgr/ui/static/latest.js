// Work that only the newest request for counts for: while one is done, of those that come only the last is kept.

/**
 * @template {unknown[]} A
 * @param {(...wanted: A) => Promise<void>} work
 * @returns {(...wanted: A) => Promise<void>}
 */
export function latest(work) {
  /** @type {A | null} */
  let next = null;
  let running = null;
  async function drain() {
    while (next !== null) {
      const wanted = next;
      next = null;
      await work(...wanted);
    }
    running = null;
  }
  return (...wanted) => {
    next = wanted;
    running ??= drain();
    return running;
  };
}
