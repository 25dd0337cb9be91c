// Requests to the public HTTP API, at the address that served this page.

const TOKEN = 'bellwether-token';
const ROLES = ['read', 'submit', 'operate', 'admin'];

export class ApiError extends Error {
  constructor(status, problem) {
    super(problem.detail || problem.title || `the gateway answered ${status}`);
    this.status = status;
    this.type = (problem.type ?? '').replace('urn:bellwether:problem:', '');
    this.job = problem.job;
  }
}

export const session = { role: 'read', name: null };

/** Whether the caller's role permits an operation. The gateway checks it again. */
export function may(role) {
  return ROLES.indexOf(session.role) >= ROLES.indexOf(role);
}

export function setToken(token) {
  if (token) sessionStorage.setItem(TOKEN, token);
  else sessionStorage.removeItem(TOKEN);
}

export function hasToken() {
  return sessionStorage.getItem(TOKEN) !== null;
}

function headers(more = {}) {
  const token = sessionStorage.getItem(TOKEN);
  return token ? { ...more, authorization: `Bearer ${token}` } : more;
}

export function url(path, query = {}) {
  const given = Object.entries(query).filter(([, value]) => value !== undefined && value !== null && value !== '');
  return given.length ? `${path}?${new URLSearchParams(given)}` : path;
}

/** Sends a request and returns the answer as JSON. */
export async function call(method, path, { query, body, signal } = {}) {
  const answer = await open(method, url(path, query), { body, signal });
  return answer.status === 204 ? null : answer.json();
}

export const get = (path, query, signal) => call('GET', path, { query, signal });
export const post = (path, body) => call('POST', path, { body });

/**
 * Reads so many pages of a list: `{rows, next}`. Lists change, so all pages that are shown are read again. A page may be empty and still
 * have a next page.
 */
export async function getPages(path, query, { field, pages, limit }, signal) {
  const rows = [];
  let next = null;
  for (let page = 0; page === 0 || (page < pages && next !== null); page += 1) {
    const found = await get(path, { ...query, limit, after: next }, signal);
    rows.push(...found[field]);
    next = found.next;
  }
  return { rows, next };
}

/** Sends a request and returns the answer unread, for streams. */
export async function open(method, path, { body, signal } = {}) {
  const json = body === undefined ? {} : { 'content-type': 'application/json' };
  const options = { method, signal, headers: headers(json), cache: 'no-store' };
  if (body !== undefined) options.body = JSON.stringify(body);
  let answer;
  try {
    answer = await fetch(path.replace(/^\//, ''), options);
  } catch (error) {
    if (error.name === 'AbortError') throw error;
    throw new ApiError(0, { type: 'unreachable', detail: 'The gateway does not answer.' });
  }
  if (answer.ok) return answer;
  let problem = {};
  try {
    problem = await answer.json();
  } catch { /* An answer of a proxy may not be JSON. */ }
  if (answer.status === 401) window.dispatchEvent(new Event('unauthenticated'));
  throw new ApiError(answer.status, problem);
}

export const jobPath = (id, rest = '') => `/v1/jobs/${encodeURIComponent(id)}${rest}`;
