// The shell: navigation, pages by address, login, and whether the page is up to date.

import { ApiError, get, hasToken, session, setToken } from './api.js';
import { ask, h, notify, update } from './dom.js';
import { instant } from './format.js';
import { liveness, start, stop } from './live.js';
import { audit } from './pages/audit.js';
import { group } from './pages/group.js';
import { groups } from './pages/groups.js';
import { job } from './pages/job.js';
import { jobs } from './pages/jobs.js';
import { kinds } from './pages/kinds.js';
import { lanes } from './pages/lanes.js';
import { overview } from './pages/overview.js';
import { schedule } from './pages/schedule.js';
import { schedules } from './pages/schedules.js';
import { settings } from './pages/settings.js';
import { worker } from './pages/worker.js';
import { workers } from './pages/workers.js';

const PAGES = [
  ['', 'Overview', overview],
  ['jobs', 'Jobs', jobs, job],
  ['groups', 'Groups', groups, group],
  ['schedules', 'Schedules', schedules, schedule],
  ['lanes', 'Lanes', lanes],
  ['kinds', 'Kinds', kinds],
  ['workers', 'Workers', workers, worker],
  ['settings', 'Settings', settings],
  ['audit', 'Audit', audit],
];

let leave = null;

/** The title of the page, the function that draws it, its parameter and its query: `#/jobs/ID?state=dead`. */
function address() {
  const [path, query] = location.hash.replace(/^#\/?/, '').split('?');
  const [name, ...rest] = path.split('/');
  const [, title, list, detail] = PAGES.find(([known]) => known === name) ?? [];
  const given = rest.join('/');
  let page = given ? detail : list;
  let parameter = null;
  try {
    parameter = given ? decodeURIComponent(given) : null;
  } catch { // A "%" that no two digits follow.
    page = undefined;
  }
  return { title, page: page ?? unknown, parameter, query: new URLSearchParams(query) };
}

async function unknown() {
  throw new ApiError(404, { detail: `There is no page at ${location.hash}.` });
}

async function show() {
  leave?.abort();
  leave = new AbortController();
  const { title, page, parameter, query } = address();
  update(document.getElementById('nav'), PAGES.map(([path, text]) =>
    h('a', { href: `#/${path}`, 'aria-current': text === title ? 'page' : null }, text)));
  document.title = `${parameter ?? title ?? 'Not found'} · Bellwether`;
  const main = document.getElementById('main');
  const root = h('div', { class: 'page', 'data-owned': true });
  main.replaceChildren(root);
  scrollTo(0, 0);
  try {
    await page({ root, parameter, query, left: leave.signal });
  } catch (error) {
    if (error.name !== 'AbortError') failed(root, error);
  }
}

function failed(root, error) {
  const title = error.status === 404 ? 'Not found' : 'This page could not be loaded';
  root.replaceChildren(h('section', { class: 'empty', role: 'alert' },
    h('h1', {}, title), h('p', {}, error.message),
    h('button', { type: 'button', onclick: show }, 'Try again')));
}

function showLiveness() {
  const { live, since } = liveness();
  const login = hasToken() && h('button', { type: 'button', class: 'link', onclick: logout }, `Log out ${session.name ?? ''}`);
  const at = new Date(since).toISOString();
  update(document.getElementById('live'),
    h('span', { class: live ? 'dot live' : 'dot stale' }), live ? 'Live' : ['Stale since ', instant(at)], login);
}

function logout() {
  setToken(null);
  location.reload();
}

let asking = false;

async function login() {
  if (asking) return;
  asking = true;
  stop();
  const data = await ask({
    title: 'Log in', action: 'Log in',
    body: [
      h('p', {}, 'This gateway requires a token. An administrator makes one with ', h('code', {}, 'bellwether token new'), '.'),
      h('label', {}, 'Token', h('input', { name: 'token', type: 'password', required: true, autocomplete: 'current-password' })),
    ],
  });
  asking = false;
  if (!data) return;
  setToken(data.token.trim());
  await begin();
}

async function begin() {
  try {
    Object.assign(session, await get('/v1/caller'));
  } catch (error) {
    if (error.status === 401) {
      if (hasToken()) notify(error.message, { error: true });
      setToken(null);
      return;
    }
  }
  start();
  await show();
  showLiveness();
}

// The address is that of the page, so the link must not change it.
document.querySelector('.skip').addEventListener('click', (event) => {
  event.preventDefault();
  document.getElementById('main').focus();
});
window.addEventListener('hashchange', show);
window.addEventListener('liveness', showLiveness);
window.addEventListener('unauthenticated', login);
window.addEventListener('keydown', (event) => {
  const typing = event.target.closest?.('input, textarea, select, dialog');
  if (typing || event.ctrlKey || event.metaKey || event.altKey) return;
  const search = document.querySelector('input[type=search]');
  if (event.key === '/' && search) {
    event.preventDefault();
    search.focus();
  } else if (event.key === '?') {
    ask({ title: 'Keyboard', action: 'Close', body: h('dl', {},
      h('dt', {}, h('kbd', {}, '/')), h('dd', {}, 'go to the search field'),
      h('dt', {}, h('kbd', {}, '1'), '–', h('kbd', {}, String(PAGES.length))), h('dd', {}, 'go to a page'),
      h('dt', {}, h('kbd', {}, '?')), h('dd', {}, 'this help')) });
  } else if (/^[1-9]$/.test(event.key) && PAGES[event.key - 1]) {
    location.hash = `#/${PAGES[event.key - 1][0]}`;
  }
});
// A browser opens at most six connections to an HTTP/1.1 server, for all tabs together: a hidden page must not hold one.
document.addEventListener('visibilitychange', () => {
  if (document.hidden) stop();
  else if (session.name) start();
});
window.addEventListener('pagehide', stop);
window.addEventListener('pageshow', ({ persisted }) => persisted && session.name && start());
setInterval(showLiveness, 5_000);
begin();

