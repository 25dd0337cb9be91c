// The list of jobs: filters, pages as the list is scrolled, and changes of many jobs.

import { get, jobPath, may, post, url } from '../api.js';
import { ask, h, notify, update } from '../dom.js';
import { ago, badge, count } from '../format.js';
import { listen } from '../live.js';
import { virtualTable } from '../table.js';

const STATES = ['queued', 'delayed', 'running', 'succeeded', 'cancelled', 'dead', 'quarantined'];
const PAGE = 200;
/** Requests of one change of many jobs that are in flight at a time. */
const AT_ONCE = 8;

export function jobLink(id) {
  return h('a', { href: `#/jobs/${encodeURIComponent(id)}` }, id);
}

/** Carries out `change(id)` for all ids, and returns how many were changed and the first errors. */
async function each(ids, change, progress) {
  const waiting = [...ids];
  const errors = [];
  let done = 0;
  const one = async () => {
    for (let id = waiting.shift(); id !== undefined; id = waiting.shift()) {
      try {
        await change(id);
      } catch (error) {
        errors.push(`${id}: ${error.message}`);
      }
      progress((done += 1));
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, one));
  return { changed: ids.length - errors.length, errors };
}

const ACTIONS = {
  cancel: { name: 'Cancel', past: 'cancelled', applies: ({ state }) => ['queued', 'delayed', 'running'].includes(state) },
  retry: { name: 'Retry', past: 'retried', applies: ({ state }) => ['dead', 'cancelled'].includes(state) },
};

async function changeMany(action, chosen) {
  const { name, past, applies } = ACTIONS[action];
  const matching = chosen.filter(applies);
  const data = await ask({
    title: `${name} ${count(matching.length)} of ${count(chosen.length)} selected jobs?`,
    action: `${name} ${count(matching.length)} jobs`, danger: action === 'cancel',
    body: [
      matching.length < chosen.length && h('p', {}, `The other ${count(chosen.length - matching.length)} cannot be ${past} in their state.`),
      h('p', {}, 'The first ones: ', matching.slice(0, 10).map(({ id }) => [h('code', {}, id), ' '])),
    ],
  });
  if (!data || !matching.length) return;
  const bar = h('progress', { max: matching.length, value: 0, 'aria-label': `${name}` });
  document.getElementById('notices').append(bar);
  const { changed, errors } = await each(matching.map(({ id }) => id), (id) => post(jobPath(id, `/${action}`)), (done) => {
    bar.value = done;
  });
  bar.remove();
  notify(`${count(changed)} jobs ${past}.`);
  if (errors.length) notify(`${count(errors.length)} failed. ${errors.slice(0, 3).join(' ')}`, { error: true });
}

export async function jobs({ root, query, left }) {
  const filter = Object.fromEntries(['state', 'kind', 'lane', 'group'].map((name) => [name, query.get(name) ?? '']));
  const rows = new Map();
  const chosen = new Set();
  let next = null;
  let complete = false;
  let loading = false;
  let changed = false;

  const apply = () => {
    location.hash = `#${url('/jobs', filter)}`;
  };
  const field = (name, label, size) => h('label', {}, label, h('input', {
    name, value: filter[name], size, autocomplete: 'off', onchange: ({ target }) => {
      filter[name] = target.value.trim();
      apply();
    },
  }));
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
      { title: 'Ended', cell: (row) => ago(row.finished_at) },
      { title: 'Attempt', class: 'number', cell: ({ attempt }) => count(attempt) },
      { title: 'Detail', cell: ({ error, message, waiting }) => error ?? message ?? waiting ?? '' },
    ],
  });

  function draw() {
    const picked = [...chosen].map((id) => rows.get(id)).filter(Boolean);
    update(summary, `${count(rows.size)} loaded${complete ? ', that is all' : ''}${picked.length ? `, ${count(picked.length)} selected` : ''}`,
      changed && [' · ', h('button', { type: 'button', class: 'link', onclick: reload }, 'Jobs have changed: load again')]);
    update(actions, Object.entries(ACTIONS).map(([action, { name, applies }]) => h('button', {
      type: 'button', disabled: !may('operate') || !picked.some(applies),
      title: may('operate') ? null : 'needs the role operate',
      onclick: async () => {
        await changeMany(action, picked);
        chosen.clear();
        await reload();
      },
    }, `${name} selected`)), summary);
    list.show([...rows.values()]);
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
      h('label', {}, 'State', h('select', { onchange: ({ target }) => {
        filter.state = target.value;
        apply();
      } }, h('option', { value: '' }, 'all'), STATES.map((state) => h('option', { value: state, selected: state === filter.state }, state)))),
      field('kind', 'Kind', 14), field('lane', 'Lane', 12), field('group', 'Group', 12)),
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
    draw();
  });
  left.addEventListener('abort', end);
}
