// The last changes through this gateway.

import { get, may } from '../api.js';
import { h, update } from '../dom.js';
import { instant } from '../format.js';
import { refresh } from '../refresh.js';
import { table } from '../table.js';

export async function audit({ root, left }) {
  if (!may('operate')) {
    update(root, h('h1', {}, 'Audit'), h('section', { class: 'empty' }, h('h2', {}, 'This page needs the role operate')));
    return;
  }
  const load = async () => {
    const { lines } = await get('/v1/audit', {}, left);
    update(root, h('h1', {}, 'Audit'),
      h('p', { class: 'quiet' }, 'The last 500 changes through this gateway, the last 100 submissions and requests of remote workers, and the last 100 requests that were refused, since it was started. Its log is the complete record.'),
      lines.length === 0 ? h('section', { class: 'empty' }, h('h2', {}, 'No changes yet'))
        : table({ caption: 'Audit', key: ({ number }) => number, rows: lines, columns: [
          { title: 'Time', cell: ({ at }) => instant(at) },
          { title: 'Caller', cell: ({ caller, role }) => (caller ? `${caller}${role ? ` (${role})` : ''}` : '–') },
          { title: 'From', cell: ({ from }) => from ?? '–' },
          { title: 'Operation', cell: ({ operation, path }) => h('span', { title: path }, operation ?? path) },
          { title: 'Status', cell: ({ status }) => h('span', { class: status === null || status >= 400 ? 'error' : '' }, status ?? 'disconnected') },
          { title: 'What', cell: ({ what }) => what ?? '' },
        ] }));
  };
  await refresh({ left, load });
}
