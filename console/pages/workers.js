// Live workers: slots, kinds, drain.

import { call, get, may, post } from '../api.js';
import { ask, h, notify, update } from '../dom.js';
import { ago, badge, count, elapsed } from '../format.js';
import { refresh } from '../refresh.js';
import { table } from '../table.js';

async function drain({ id, node }) {
  const sure = await ask({
    title: `Drain worker ${node ?? id}?`, action: 'Drain', danger: true,
    body: h('p', {}, 'It takes no new jobs, finishes the running ones within its grace period, hands back the rest, and leaves. Its node runs without a worker until it is restarted.'),
  });
  if (!sure) return;
  try {
    const { outcome } = await post(`/v1/workers/${encodeURIComponent(id)}/drain`);
    notify(`${node ?? id}: ${outcome.replaceAll('_', ' ')}.`);
  } catch (error) {
    notify(error.message, { error: true });
  }
}

const list = (text) => text.split(',').map((part) => part.trim()).filter(Boolean);

/** Changes what has been edited, and leaves the rest as it is. */
async function edit({ id, node, slots, tags, settings }) {
  const paused = settings?.paused_kinds ?? [];
  const data = await ask({
    title: `Change worker ${node ?? id}`, action: 'Change',
    body: [
      h('p', {}, 'Assignments follow immediately, running jobs continue. The changes end with the process of the worker.'),
      h('label', {}, 'Slots', h('input', { name: 'slots', type: 'number', min: 0, max: 4096, value: slots, required: true })),
      h('label', {}, 'Tags, separated by commas', h('input', { name: 'tags', value: tags.join(', ') })),
      h('label', {}, 'Paused kinds, separated by commas', h('input', { name: 'paused', value: paused.join(', ') })),
    ],
  });
  if (!data) return;
  const wanted = list(data.paused);
  const change = {
    pause_kinds: wanted.filter((kind) => !paused.includes(kind)),
    resume_kinds: paused.filter((kind) => !wanted.includes(kind)),
  };
  if (Number(data.slots) !== slots) change.slots = Number(data.slots);
  if (list(data.tags).join() !== tags.join()) change.tags = list(data.tags);
  try {
    await call('PATCH', `/v1/workers/${encodeURIComponent(id)}`, { body: change });
    notify(`${node ?? id} was changed.`);
  } catch (error) {
    notify(error.message, { error: true });
  }
}

/** Whether the worker takes jobs. */
export const state = ({ draining, error, shunned_until: until }) => (error ? h('span', { class: 'error' }, error)
  : draining ? badge('draining') : until ? h('span', {}, 'gets no jobs until ', ago(until)) : badge('ready'));

/** The buttons of a worker. */
export function actions(row) {
  const button = (name, possible, run) => h('button', {
    type: 'button', disabled: !may('operate') || !possible, title: may('operate') ? null : 'needs the role operate',
    onclick: () => run(row), 'aria-label': `${name} ${row.node ?? row.id}`,
  }, name);
  return [button('Change', row.slots !== null, edit), ' ', button('Drain', !row.draining, drain)];
}

export async function workers({ root, left }) {
  const load = async () => {
    const rows = await get('/v1/workers', {}, left);
    update(root, h('h1', {}, 'Workers'), rows.length === 0
      ? h('section', { class: 'empty' }, h('h2', {}, 'No workers'), h('p', {}, 'Start one with ', h('code', {}, 'bellwether node'), '.'))
      : table({ caption: 'Workers', key: ({ id }) => id, rows, columns: [
        { title: 'Node', cell: ({ node, id }) => h('a', { href: `#/workers/${encodeURIComponent(id)}`, title: id }, node ?? id) },
        { title: 'Host', cell: ({ host }) => host ?? '–' },
        { title: 'State', cell: state },
        { title: 'Busy', cell: ({ node, id, assigned, slots }) => h('a', { href: `#/workers/${encodeURIComponent(id)}` },
          h('meter', { min: 0, max: slots || 1, value: assigned, 'aria-label': `Busy slots of ${node ?? id}` }), ` ${count(Math.min(assigned, slots))} of ${count(slots)}`) },
        { title: 'Up', cell: (row) => elapsed(row.started_at) },
        { title: 'Kinds', cell: ({ kinds, settings }) => {
          const paused = settings?.paused_kinds ?? [];
          return h('span', { title: kinds.join(', ') }, kinds.join(', '), paused.length > 0 && ` (paused: ${paused.join(', ')})`);
        } },
        { title: 'Tags', cell: ({ tags }) => tags.join(', ') || '–' },
        { title: 'Action', cell: actions },
      ] }));
  };
  await refresh({ left, load });
}
