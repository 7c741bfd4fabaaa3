// Numbers, times and names, as people read them.

const numbers = new Intl.NumberFormat("en");
const pad = (number, width = 2) => String(number).padStart(width, "0");

/** @param {number} value */
export const count = (value) => numbers.format(value);

/** A time of day. @param {number} microseconds since 1970 */
export function clock(microseconds) {
  const at = new Date(microseconds / 1000);
  return `${pad(at.getHours())}:${pad(at.getMinutes())}:${pad(at.getSeconds())}`;
}

/** A day. @param {number} microseconds since 1970 */
export function day(microseconds) {
  const at = new Date(microseconds / 1000);
  return `${at.getFullYear()}-${pad(at.getMonth() + 1)}-${pad(at.getDate())}`;
}

/** All of a time, to be pointed at. @param {number} microseconds since 1970 */
export function moment(microseconds) {
  return new Date(microseconds / 1000).toISOString();
}

/** How long something takes. @param {number} seconds */
export function duration(seconds) {
  if (seconds <= 0) return "0";
  if (seconds < 0.001) return `${precise(seconds * 1e6)} µs`;
  if (seconds < 1) return `${precise(seconds * 1e3)} ms`;
  if (seconds < 100) return `${precise(seconds)} s`;
  if (seconds < 6000) return `${Math.floor(seconds / 60)} min`;
  const hours = Math.floor(seconds / 3600);
  return hours < 48 ? `${hours} h ${Math.floor((seconds % 3600) / 60)} min` : `${Math.floor(hours / 24)} d`;
}

/** @param {number} bytes */
export function size(bytes) {
  const units = ["B", "KiB", "MiB", "GiB"];
  const power = Math.min(units.length - 1, Math.floor(Math.log2(Math.max(1, bytes)) / 10));
  return `${precise(bytes / 1024 ** power)} ${units[power]}`;
}

/** Three digits that say something. @param {number} value */
export function precise(value) {
  return value >= 100 ? numbers.format(Math.round(value)) : String(Number(value.toPrecision(3)));
}

/** Who it is, without what all such names begin with. @param {string} actor */
export function who(actor) {
  return actor.replace(/^system:((controller|node|serviceaccount):)?/, "") || "somebody";
}

/** `endpointslices` of `endpointslices.discovery.k8s.io`. @param {string} resource */
export const plural = (resource) => resource.split(".")[0];

/** @param {{namespace: string, name: string}} place */
export const placed = (place) => (place.namespace ? `${place.namespace}/${place.name}` : place.name);

/** A JSON value in a line. @param {unknown} value @param {number} [widest] */
export function value(value, widest = 400) {
  const text = typeof value === "string" ? value : JSON.stringify(value);
  return text.length > widest ? `${text.slice(0, widest - 1)}…` : text;
}
