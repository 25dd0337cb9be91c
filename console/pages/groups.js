// The list of groups.

import { getPages, url } from '../api.js';
import { h, notify, update } from '../dom.js';
import { ago, badge, count } from '../format.js';
import { refresh } from '../refresh.js';
import { table } from '../table.js';
import { jobLink } from './jobs.js';

const PAGE = 200;
const STAGES = ['open', 'joining', 'finishing', 'done'];

export async function groups({ root, query, left }) {
  const stage = query.get('stage') ?? '';
  let pages = 1;
  const load = async () => {
    const { rows, next } = await getPages('/v1/groups', { stage }, { field: 'groups', pages, limit: PAGE }, left);
    // The API has no order. A list that may have further pages would jump while it is loaded.
    if (next === null && pages === 1) rows.sort((one, other) => Date.parse(other.created_at) - Date.parse(one.created_at) || 0);
    const more = () => {
      pages += 1;
      load().catch((error) => notify(error.message, { error: true }));
    };
    const choose = ({ target }) => {
      location.hash = `#${url('/groups', { stage: target.value })}`;
    };
    const empty = stage
      ? h('section', { class: 'empty' }, h('h2', {}, 'No group is in this stage'), h('a', { href: '#/groups' }, 'Show all groups'))
      : h('section', { class: 'empty' }, h('h2', {}, 'No groups'),
        h('p', {}, 'A group is a set of jobs with a join that runs when all have ended: ', h('code', {}, `bellwether job submit sum '[1]' --group g --number 0 --total 1`),
          '. The join is a job of kind ', h('code', {}, 'sum.join'), ', which needs a worker with a handler for it.'));
    update(root, h('h1', {}, 'Groups'),
      h('div', { class: 'row' }, h('label', {}, 'Stage', h('select', { name: 'stage', onchange: choose }, h('option', { value: '' }, 'all'),
        STAGES.map((name) => h('option', { value: name, selected: name === stage }, name))))),
      rows.length === 0 && next === null ? empty : table({ caption: 'Groups', key: ({ id }) => id, rows, columns: [
        { title: 'Group', cell: ({ id }) => h('a', { href: `#/groups/${encodeURIComponent(id)}` }, id) },
        { title: 'Stage', cell: ({ stage: name }) => badge(name ?? 'unreadable') },
        { title: 'Kind', cell: ({ kind }) => kind ?? '–' },
        { title: 'Members', class: 'number', cell: ({ total }) => count(total) },
        { title: 'Parent', cell: ({ parent }) => (parent ? jobLink(parent) : '') },
        { title: 'Created', cell: (row) => ago(row.created_at) },
        { title: 'Done', cell: (row) => ago(row.done_at) },
      ] }),
      rows.length > 0 && h('p', { class: 'quiet', role: 'status' }, `${count(rows.length)} loaded${next === null ? ', that is all' : ''}`),
      next !== null && h('button', { type: 'button', onclick: more }, 'Show more'));
  };
  await refresh({ left, load, every: 10_000 });
}
