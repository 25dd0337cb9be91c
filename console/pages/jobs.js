// The list of jobs: filters, pages as the list is scrolled, and changes of many jobs.

import { get, may, url } from '../api.js';
import { h, notify, update } from '../dom.js';
import { ago, badge, count } from '../format.js';
import { listen } from '../live.js';
import { ACTIONS, changeMany, purgeMany } from '../many.js';
import { virtualTable } from '../table.js';

const STATES = ['queued', 'delayed', 'running', 'succeeded', 'cancelled', 'dead', 'quarantined'];
const ENDED = ['succeeded', 'cancelled', 'dead'];
const PAGE = 200;
const TIMES = ['submitted', 'finished'].flatMap((name) => [`${name}_after`, `${name}_before`]);

export function jobLink(id) {
  return h('a', { href: `#/jobs/${encodeURIComponent(id)}` }, id);
}

/** The value of a local date and time field as an instant, and back. */
const toInstant = (local) => (local ? new Date(local).toISOString() : '');
function toLocal(instant) {
  const at = new Date(instant);
  if (!instant || Number.isNaN(at.getTime())) return '';
  return new Date(at - at.getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
}

export async function jobs({ root, query, left }) {
  const filter = Object.fromEntries(['state', 'kind', 'lane', 'group', ...TIMES].map((name) => [name, query.get(name) ?? '']));
  const rows = new Map();
  const chosen = new Set();
  let next = null;
  let complete = false;
  let loading = false;
  let changed = false;
  let waiting = false;

  const apply = () => {
    location.hash = `#${url('/jobs', filter)}`;
  };
  const field = (name, label, size) => h('label', {}, label, h('input', {
    name, value: filter[name], size, autocomplete: 'off', onchange: ({ target }) => {
      filter[name] = target.value.trim();
      apply();
    },
  }));
  // The address has one pair of bounds: that of the submission or that of the end.
  const timed = TIMES.some((name) => name.startsWith('finished') && filter[name]) ? 'finished' : 'submitted';
  const bound = (side, label) => h('label', {}, label, h('input', {
    name: side, type: 'datetime-local', value: toLocal(filter[`${timed}_${side}`]), onchange: ({ target }) => {
      filter[`${timed}_${side}`] = toInstant(target.value);
      apply();
    },
  }));
  const choose = ({ target }) => {
    for (const side of ['after', 'before']) {
      filter[`${target.value}_${side}`] = filter[`${timed}_${side}`];
      filter[`${timed}_${side}`] = '';
    }
    apply();
  };
  const open = (event) => {
    event.preventDefault();
    const id = new FormData(event.target).get('id').trim();
    if (id) location.hash = `#/jobs/${encodeURIComponent(id)}`;
  };
  const summary = h('span', { class: 'quiet', role: 'status' });
  const actions = h('div', { class: 'row' });
  const list = virtualTable({
    caption: 'Jobs', key: ({ id }) => id, more,
    columns: [
      { title: h('input', { type: 'checkbox', 'aria-label': 'Select all loaded jobs', onchange: ({ target }) => {
        chosen.clear();
        if (target.checked) rows.forEach((_, id) => chosen.add(id));
        draw();
      } }), cell: ({ id }) => h('input', { type: 'checkbox', 'aria-label': `Select ${id}`, checked: chosen.has(id), onchange: ({ target }) => {
        if (target.checked) chosen.add(id);
        else chosen.delete(id);
        draw();
      } }) },
      { title: 'Job', cell: ({ id }) => jobLink(id) },
      { title: 'Kind', cell: ({ kind }) => kind ?? '–' },
      { title: 'State', cell: ({ state, percent }) => [badge(state), state === 'running' && percent !== null ? ` ${percent} %` : ''] },
      { title: 'Submitted', cell: (row) => ago(row.submitted_at) },
      { title: 'Ended', class: 'wide', cell: (row) => ago(row.finished_at) },
      { title: 'Attempt', class: 'number wide', cell: ({ attempt }) => count(attempt) },
      { title: 'Detail', class: 'wide', cell: ({ state, error, message, waiting_for: reason }) => error ?? (state === 'running' ? message : null) ?? reason ?? '' },
    ],
  });

  function draw() {
    const picked = [...chosen].map((id) => rows.get(id)).filter(Boolean);
    update(summary, `${count(rows.size)} loaded${complete ? ', that is all' : ''}${picked.length ? `, ${count(picked.length)} selected` : ''}`,
      changed && [' · ', h('button', { type: 'button', class: 'link', onclick: reload }, 'Jobs have changed: load again')]);
    const button = (name, role, possible, run) => h('button', {
      type: 'button', disabled: !may(role) || !possible, title: may(role) ? null : `needs the role ${role}`, 'aria-label': `${name} selected`,
      onclick: async () => {
        if (!await run()) return;
        chosen.clear();
        await reload();
      },
    }, name, h('span', { class: 'wide' }, ' selected'));
    update(actions, Object.entries(ACTIONS).map(([action, { name, applies }]) =>
      button(name, 'operate', picked.some(applies), () => changeMany(action, picked))),
    button('Purge', 'admin', picked.some(({ state }) => ENDED.includes(state)), () => purgeMany(picked)), summary);
    list.show(ordered());
  }

  /** The API has no order. What fits on one page is sorted, newest first; a longer list would jump while it is loaded. */
  function ordered() {
    const all = [...rows.values()];
    const at = ({ submitted_at: instant }) => Date.parse(instant) || 0;
    return complete && all.length <= PAGE ? all.sort((one, other) => at(other) - at(one) || one.id.localeCompare(other.id, 'en', { numeric: true })) : all;
  }

  /** Draws once for all events of a frame: a busy cluster has thousands per second. */
  function drawSoon() {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(() => {
      waiting = false;
      if (!left.aborted) draw();
    });
  }

  async function more() {
    if (loading || complete || left.aborted) return;
    loading = true;
    try {
      const page = await get('/v1/jobs', { ...filter, limit: PAGE, after: next }, left);
      page.jobs.forEach((job) => rows.set(job.id, job));
      next = page.next;
      complete = next === null;
    } catch (error) {
      if (error.name !== 'AbortError') notify(error.message, { error: true });
      complete = true;
    }
    loading = false;
    if (!left.aborted) draw();
  }

  async function reload() {
    rows.clear();
    [next, complete, changed] = [null, false, false];
    await more();
  }

  update(root,
    h('h1', {}, 'Jobs'),
    h('div', { class: 'row' },
      h('form', { role: 'search', onsubmit: open }, h('label', {}, 'Job id', h('input', { type: 'search', name: 'id', placeholder: 'open by id', size: 24 }))),
      h('label', {}, 'State', h('select', { name: 'state', onchange: ({ target }) => {
        filter.state = target.value;
        apply();
      } }, h('option', { value: '' }, 'all'), STATES.map((state) => h('option', { value: state, selected: state === filter.state }, state)))),
      field('kind', 'Kind', 16), field('lane', 'Lane', 16), field('group', 'Group', 16)),
    h('div', { class: 'row' },
      h('label', {}, 'Time of', h('select', { onchange: choose },
        [['submitted', 'submission'], ['finished', 'end']].map(([value, text]) => h('option', { value, selected: value === timed }, text)))),
      bound('after', 'From'), bound('before', 'Until')),
    actions, list.element);
  await reload();
  if (rows.size === 0 && complete) {
    const filtered = Object.values(filter).some(Boolean);
    list.element.replaceWith(h('section', { class: 'empty' },
      h('h2', {}, filtered ? 'No job matches the filter' : 'No jobs yet'),
      filtered ? h('a', { href: '#/jobs' }, 'Show all jobs')
        : h('p', {}, 'Submit one with ', h('code', {}, `bellwether job submit sum '{"first": 1, "second": 2}'`), '.')));
  }
  const end = listen((event) => {
    const row = event && rows.get(event.job);
    if (!row) changed = event === null ? changed : true;
    else if (row.generation <= event.generation) Object.assign(row, { state: event.state, attempt: event.attempt, error: event.error, generation: event.generation });
    drawSoon();
  });
  left.addEventListener('abort', end);
}
