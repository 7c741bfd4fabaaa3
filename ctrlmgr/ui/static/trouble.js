// Which states of objects are well, and which are trouble: the same colours everywhere on the page.

const WELL = new Set("Running Ready Active Bound Succeeded Completed Complete Available True".split(" "));
const QUIET = new Set(["", "<none>", "SchedulingDisabled", "Released", "Suspended"]);
const TROUBLE =
  /Pending|Terminating|NotReady|Unknown|Fail|BackOff|Err|Error|Creating|Invalid|Evicted|Lost|Killed|Deadline|False|:/;

/** Return the class of a cell in a column. @param {string} column @param {unknown} cell */
export function state(column, cell) {
  if (column !== "Status" && column !== "Ready") return "";
  const text = String(cell ?? "");
  const counted = /^(\d+)\/(\d+)$/.exec(text);
  if (counted) return counted[1] === counted[2] ? "" : "bad";
  if (WELL.has(text)) return "good";
  return !QUIET.has(text) && TROUBLE.test(text) ? "bad" : "";
}
