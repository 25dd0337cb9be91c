// Kinds of jobs: who serves them, and pauses.

import { get, may, post } from '../api.js';
import { ask, h, notify, update } from '../dom.js';
import { ago, badge, count } from '../format.js';
import { refresh } from '../refresh.js';
import { table } from '../table.js';

export async function kinds({ root, left }) {
  const load = async () => {
    const rows = await get('/v1/kinds', {}, left);
    const change = (kind, action) => async () => {
      if (action === 'pause' && !await ask({
        title: `Pause kind ${kind}?`, action: 'Pause', danger: true,
        body: h('p', {}, 'No worker of the namespace starts jobs of this kind until it is resumed. Running jobs finish.'),
      })) return;
      try {
        const { outcome } = await post(`/v1/kinds/${encodeURIComponent(kind)}/${action}`);
        notify(`${kind}: ${outcome.replaceAll('_', ' ')}.`);
        await load();
      } catch (error) {
        notify(error.message, { error: true });
      }
    };
    update(root, h('h1', {}, 'Kinds'), rows.length === 0
      ? h('section', { class: 'empty' }, h('h2', {}, 'No kinds'), h('p', {}, 'Kinds appear when a worker with handlers starts: ', h('code', {}, 'bellwether node'), '.'))
      : table({ caption: 'Kinds', key: ({ kind }) => kind, rows, columns: [
        { title: 'Kind', cell: ({ kind }) => h('a', { href: `#/jobs?kind=${encodeURIComponent(kind)}` }, kind) },
        { title: 'State', cell: ({ paused, workers, paused_on: elsewhere }) => (paused
          ? [badge('paused'), paused.by ? ` by ${paused.by}, ` : ' ', ago(paused.since)]
          : !workers.length ? h('span', { class: 'error' }, 'no worker')
            : elsewhere.length ? [badge('paused'), ` on ${count(elsewhere.length)} of its workers`] : badge('ready')) },
        { title: 'Workers', class: 'number', cell: ({ workers }) => count(workers.length) },
        { title: 'Busy', class: 'number', cell: ({ assigned, slots }) => `${count(assigned)} of ${count(slots)}` },
        { title: 'Action', cell: ({ kind, paused }) => h('button', {
          type: 'button', disabled: !may('operate'), title: may('operate') ? null : 'needs the role operate',
          onclick: change(kind, paused ? 'resume' : 'pause'), 'aria-label': `${paused ? 'Resume' : 'Pause'} ${kind}`,
        }, paused ? 'Resume' : 'Pause') },
      ] }));
  };
  await refresh({ left, load });
}
