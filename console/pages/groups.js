// The list of groups.

import { get } from '../api.js';
import { h, update } from '../dom.js';
import { ago, badge, count } from '../format.js';
import { refresh } from '../refresh.js';
import { table } from '../table.js';
import { jobLink } from './jobs.js';

const PAGE = 200;

export async function groups({ root, left }) {
  let limit = PAGE;
  const load = async () => {
    const { groups: rows, next } = await get('/v1/groups', { limit }, left);
    update(root, h('h1', {}, 'Groups'), rows.length === 0
      ? h('section', { class: 'empty' }, h('h2', {}, 'No groups'),
        h('p', {}, 'A group is a set of jobs with a join that runs when all have ended: ', h('code', {}, `bellwether job submit sum '[1]' --group g --number 0 --total 1`), '.'))
      : [table({ caption: 'Groups', key: ({ id }) => id, rows, columns: [
        { title: 'Group', cell: ({ id }) => h('a', { href: `#/groups/${encodeURIComponent(id)}` }, id) },
        { title: 'Stage', cell: ({ stage }) => badge(stage) },
        { title: 'Kind', cell: ({ kind }) => kind ?? '–' },
        { title: 'Members', class: 'number', cell: ({ total }) => count(total) },
        { title: 'Parent', cell: ({ parent }) => (parent ? jobLink(parent) : '') },
        { title: 'Created', cell: (row) => ago(row.created_at) },
        { title: 'Done', cell: (row) => ago(row.done_at) },
      ] }), next && h('button', { type: 'button', disabled: limit >= 1000, onclick: () => {
        limit = 1000;
        load();
      } }, 'Show more')]);
  };
  await refresh({ left, load, every: 10_000 });
}
