// Lanes: jobs that run one after the other.

import { getPages } from '../api.js';
import { h, notify, update } from '../dom.js';
import { count } from '../format.js';
import { refresh } from '../refresh.js';
import { table } from '../table.js';
import { jobLink } from './jobs.js';

const PAGE = 200;

export async function lanes({ root, left }) {
  let pages = 1;
  const load = async () => {
    const { rows, next } = await getPages('/v1/lanes', {}, { field: 'lanes', pages, limit: PAGE }, left);
    rows.sort((one, other) => other.jobs - one.jobs || (one.lane < other.lane ? -1 : 1));
    const more = () => {
      pages += 1;
      load().catch((error) => notify(error.message, { error: true }));
    };
    update(root, h('h1', {}, 'Lanes'), rows.length === 0 && next === null
      ? h('section', { class: 'empty' }, h('h2', {}, 'No lanes with open jobs'),
        h('p', {}, 'The jobs of a lane run one after the other: ', h('code', {}, "bellwether job submit sum '[1]' --lane account-1"), '.'))
      : [h('p', { class: 'quiet' }, 'Lanes with open jobs. The jobs of a lane run one after the other, in the order of their submission.'),
        table({ caption: 'Lanes', key: ({ lane }) => lane, rows, columns: [
          { title: 'Lane', cell: ({ lane }) => h('a', { href: `#/jobs?lane=${encodeURIComponent(lane)}` }, lane) },
          { title: 'Open jobs', class: 'number', cell: ({ jobs }) => count(jobs) },
          { title: 'First job', cell: ({ first }) => (first ? jobLink(first) : '–') },
        ] }), next !== null && h('button', { type: 'button', onclick: more }, 'Show more')]);
  };
  await refresh({ left, load });
}
