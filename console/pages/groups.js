// Groups of jobs, and the members of one.

import { get, may, post } from '../api.js';
import { ask, h, notify, update } from '../dom.js';
import { ago, badge, count, instant } from '../format.js';
import { refresh } from '../refresh.js';
import { table } from '../table.js';
import { jobLink } from './jobs.js';

const path = (id, rest = '') => `/v1/groups/${encodeURIComponent(id)}${rest}`;
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

export async function group({ root, parameter: id, left }) {
  const load = async () => {
    const [found, page] = await Promise.all([get(path(id), {}, left), get('/v1/jobs', { group: id, limit: PAGE }, left)]);
    const abandon = async () => {
      if (!await ask({ title: `Abandon ${id}?`, action: 'Abandon', danger: true, body: h('p', {}, 'It accepts no more members, and ends without a join when its members have ended.') })) return;
      try {
        await post(path(id, '/abandon'));
        await load();
      } catch (error) {
        notify(error.message, { error: true });
      }
    };
    const ended = found.succeeded + found.dead + found.cancelled;
    const facts = [
      ['Status', found.status], ['Kind', found.kind], ['Members', found.total === null ? 'not sealed yet' : count(found.total)],
      ['Succeeded', count(found.succeeded)], ['Dead', count(found.dead)], ['Cancelled', count(found.cancelled)], ['Open', count(found.open)],
      ['Join', found.join && jobLink(found.join)], ['Finish', found.finish && jobLink(found.finish)], ['Parent', found.parent && jobLink(found.parent)],
      ['Created', instant(found.created_at)], ['Done', found.done_at && instant(found.done_at)],
    ];
    update(root,
      h('div', { class: 'row' }, h('h1', { class: 'grow' }, id), badge(found.stage),
        h('button', { type: 'button', class: 'danger', disabled: !may('operate') || found.done_at !== null, title: may('operate') ? null : 'needs the role operate', onclick: abandon }, 'Abandon')),
      found.total > 0 && h('progress', { max: found.total, value: ended, 'aria-label': 'Ended members' }),
      h('section', {}, h('dl', {}, facts.filter(([, value]) => value).map(([name, value]) => [h('dt', {}, name), h('dd', {}, value)]))),
      table({ caption: 'Members', key: (row) => row.id, rows: page.jobs, columns: [
        { title: 'Job', cell: (row) => jobLink(row.id) },
        { title: 'State', cell: ({ state }) => badge(state) },
        { title: 'Sub-jobs', cell: ({ sub_jobs: nested }) => nested.map((id) => [h('a', { href: `#/groups/${encodeURIComponent(id)}` }, id), ' ']) },
        { title: 'Detail', cell: ({ error, message }) => error ?? message ?? '' },
      ] }),
      page.next && h('p', {}, h('a', { href: `#/jobs?group=${encodeURIComponent(id)}` }, 'All members')));
  };
  await refresh({ left, load });
}
