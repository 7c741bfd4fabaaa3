// Asking the server. Addresses are relative: the page may be served below any path, as `kubectl proxy` does.

const TOKEN = "ctrlmgr.token";
const REPLACES = "This link brings another token. Should this tab use it from now on, instead of the one that it has?";

/** What the server refuses, in its own words. */
export class Refused extends Error {
  /** @param {number} code @param {string} message */
  constructor(code, message) {
    super(message);
    this.code = code;
    /** Whether none of the page's data may be seen, rather than one object. */
    this.needsToken = code === 401 || (code === 403 && message.startsWith("forbidden:"));
  }
}

/** The server does not answer. */
export class Unreachable extends Error {}

/**
 * Take the token out of the address the page was opened with, and out of sight; it lives as long as the tab.
 * A link may be anybody's: the token that the tab has gives way to another one only if the user says so.
 */
export function takeToken() {
  const found = /^#token=([^&]+)/.exec(location.hash);
  if (!found) return;
  history.replaceState(null, "", location.pathname + location.search + "#/");
  const [token, kept] = [decodeURIComponent(found[1]).trim(), sessionStorage.getItem(TOKEN)];
  if (kept === null || kept === token || confirm(REPLACES)) keepToken(token);
}

/** @param {string} token */
export function keepToken(token) {
  sessionStorage.setItem(TOKEN, token.trim());
}

export function hasToken() {
  return sessionStorage.getItem(TOKEN) !== null;
}

export function forgetToken() {
  sessionStorage.removeItem(TOKEN);
}

/**
 * Ask for data; throws `Refused` or `Unreachable`.
 * @param {string} name @param {Record<string, string | number | null | undefined>} [query]
 * @returns {Promise<any>}
 */
export async function ask(name, query = {}) {
  const told = Object.entries(query).filter(([, value]) => value !== null && value !== undefined && value !== "");
  const asked = new URLSearchParams(told.map(([key, value]) => [key, String(value)])).toString();
  const response = await sent(`api/${name}${asked ? `?${asked}` : ""}`);
  if (response.ok) return response.json();
  throw new Refused(response.status, await reason(response));
}

/**
 * Ask the API for a text; throws as `ask` does.
 * @param {string} address @returns {Promise<string>}
 */
export async function text(address) {
  const response = await sent(address);
  if (response.ok) return response.text();
  throw new Refused(response.status, await reason(response));
}

async function sent(address) {
  const token = sessionStorage.getItem(TOKEN);
  try {
    return await fetch(address, { cache: "no-store", headers: token ? { authorization: `Bearer ${token}` } : {} });
  } catch {
    throw new Unreachable("the server does not answer");
  }
}

async function reason(response) {
  const said = await response.text();
  try {
    return JSON.parse(said).message || response.statusText;
  } catch {
    return said.trim() || response.statusText;
  }
}
