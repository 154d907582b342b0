// Requests to the server. The token is kept for this tab only, and travels in a header.

const KEPT_AS = "laneway-token";
const BASE = new URL("./", document.baseURI);

let token = sessionStorage.getItem(KEPT_AS);
let me = { subject: "", scopes: [] };

/** An answer that is a refusal; `message` says what to do. */
export class Refusal extends Error {
  constructor(status, problem) {
    super(problem.detail || problem.title || `the server answered ${status}`);
    this.status = status;
    this.code = problem.code || "";
  }
}

/** The server did not answer at all. */
export class Unreachable extends Error {
  constructor() {
    super("The server cannot be reached.");
  }
}

export const hasToken = () => token !== null;

export function setToken(text) {
  token = text || null;
  if (token) sessionStorage.setItem(KEPT_AS, token);
  else sessionStorage.removeItem(KEPT_AS);
}

export const may = (scope) => me.scopes.includes(scope);
export const subject = () => me.subject;

/** Learns who we are to the server. */
export async function introduce() {
  me = await ask("GET", "api/me");
  return me;
}

export function headers(more = {}) {
  return token ? { authorization: `Bearer ${token}`, ...more } : more;
}

/** Sends a request to a path relative to where the page was loaded from. */
export async function send(method, path, { body, ...rest } = {}) {
  const given = body === undefined ? {} : { "content-type": "application/json" };
  const request = { method, cache: "no-store", ...rest, headers: headers({ ...given, ...rest.headers }) };
  if (body !== undefined) request.body = JSON.stringify(body);
  let response;
  try {
    response = await fetch(new URL(path, BASE), request);
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Unreachable();
  }
  if (response.ok) return response;
  const problem = await response.json().catch(() => ({}));
  throw new Refusal(response.status, problem);
}

export async function ask(method, path, options) {
  const response = await send(method, path, options);
  if (response.status === 204) return null;
  const kind = response.headers.get("content-type") || "";
  return kind.startsWith("application/json") ? response.json() : response.text();
}

/** One part of a path. */
export const part = encodeURIComponent;

/** A path with a query of what is given. */
export function withQuery(path, query) {
  const given = Object.entries(query).filter(([, value]) => value !== undefined && value !== null && value !== "");
  return given.length ? `${path}?${new URLSearchParams(given)}` : path;
}

/** The items of all pages, as many pages as allowed; `more` says whether something was left out. */
export async function pages(path, { query = {}, pagesMax = 4, signal } = {}) {
  const items = [];
  let cursor;
  for (let page = 0; page < pagesMax; page += 1) {
    const found = await ask("GET", withQuery(path, { limit: 500, ...query, cursor }), { signal });
    items.push(...found.items);
    cursor = found.next_cursor;
    if (!cursor) break;
  }
  return { items, more: Boolean(cursor) };
}
