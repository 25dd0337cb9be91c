// One worker, and the jobs that it runs.

import { get, getPages } from '../api.js';
import { h, notify, update } from '../dom.js';
import { badge, count, elapsed, instant, term } from '../format.js';
import { refresh } from '../refresh.js';
import { table } from '../table.js';
import { jobLink } from './jobs.js';
import { actions, state } from './workers.js';

const PAGE = 100;

function facts(worker) {
  const paused = worker.settings?.paused_kinds ?? [];
  const list = [
    ['Worker', h('span', { class: 'mono' }, worker.id)], ['Host', worker.host],
    ['Busy', `${count(worker.assigned)} of ${count(worker.slots)} slots`], ['Started', worker.started_at && instant(worker.started_at)],
    ['Kinds', worker.kinds.map((kind) => [h('a', { href: `#/jobs?kind=${encodeURIComponent(kind)}` }, kind), paused.includes(kind) ? ' (paused) ' : ' '])],
    ['Tags', worker.tags.join(', ')],
  ];
  return h('section', {}, h('h2', {}, 'Details'),
    h('dl', {}, list.filter(([, value]) => value && value.length !== 0).map(([name, value]) => [h('dt', {}, name), h('dd', {}, value)])));
}

const running = (jobs) => table({ caption: 'Jobs of the worker', key: ({ id }) => id, rows: jobs, columns: [
  { title: 'Job', cell: ({ id }) => jobLink(id) },
  { title: 'Kind', cell: ({ kind }) => kind ?? '–' },
  { title: 'Attempt', class: 'number', cell: ({ attempt }) => count(attempt) },
  { title: 'Runs for', cell: (job) => elapsed(job.assigned_at) },
  { title: 'Progress', cell: ({ id, percent, message, cancel_requested: cancel }) => [
    percent !== null && [h('meter', { min: 0, max: 100, value: percent, 'aria-label': `Progress of ${id}` }), ` ${percent} % `],
    message ?? (percent === null ? '–' : ''), cancel && ' (asked to stop)'] },
  { title: 'Lease', cell: ({ lease }) => (lease ? term(lease) : '–') },
] });

export async function worker({ root, parameter: id, left }) {
  let pages = 1;
  const load = async () => {
    const found = (await get('/v1/workers', {}, left)).find((one) => one.id === id);
    const { rows: jobs, next } = await getPages(`/v1/workers/${encodeURIComponent(id)}/jobs`, {}, { field: 'jobs', pages, limit: PAGE }, left);
    const more = () => {
      pages += 1;
      load().catch((error) => notify(error.message, { error: true }));
    };
    update(root,
      h('div', { class: 'row' }, h('h1', { class: 'grow' }, found?.node ?? id),
        found ? [state(found), actions(found)] : badge('gone')),
      found ? facts(found) : h('section', { class: 'warnings' }, h('p', {}, 'This worker has left. The leader takes back the jobs that it did not finish.')),
      h('h2', {}, 'What runs'),
      jobs.length === 0 && next === null ? h('section', { class: 'empty' }, h('p', {}, 'No job is assigned to this worker.')) : running(jobs),
      next !== null && h('button', { type: 'button', onclick: more }, 'Show more'));
  };
  await refresh({ left, load, failed: (error) => (error.status === 404
    ? update(root, h('section', { class: 'empty' }, h('h1', {}, 'The worker has left'), h('p', {}, error.message), h('a', { href: '#/workers' }, 'Show the workers')))
    : notify(error.message, { error: true })) });
}
