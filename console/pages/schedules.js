// The list of schedules.

import { getPages } from '../api.js';
import { h, notify, update } from '../dom.js';
import { ago, badge, count, instant, term } from '../format.js';
import { refresh } from '../refresh.js';
import { table } from '../table.js';

const PAGE = 200;

/** A rule in a few words. */
export function when(rule) {
  if (rule.cron) return h('span', {}, h('code', {}, rule.cron), rule.zone ? ` ${rule.zone}` : '');
  if (rule.every) return `every ${term(rule.every)}`;
  return rule.at ? ['at ', instant(rule.at)] : '–';
}

const state = ({ state: name, error }) => (error ? h('span', { class: 'error' }, error) : badge(name));

export async function schedules({ root, left }) {
  let pages = 1;
  const load = async () => {
    const { rows, next } = await getPages('/v1/schedules', {}, { field: 'schedules', pages, limit: PAGE }, left);
    const more = () => {
      pages += 1;
      load().catch((error) => notify(error.message, { error: true }));
    };
    update(root, h('h1', {}, 'Schedules'), rows.length === 0 && next === null
      ? h('section', { class: 'empty' }, h('h2', {}, 'No schedules'),
        h('p', {}, 'Add one with ', h('code', {}, `bellwether schedule add nightly sum '[1, 2]' --cron '30 2 * * *'`), '.'))
      : table({ caption: 'Schedules', key: ({ id }) => id, rows, columns: [
        { title: 'Schedule', cell: ({ id }) => h('a', { href: `#/schedules/${encodeURIComponent(id)}` }, id) },
        { title: 'State', cell: state },
        { title: 'When', cell: when },
        { title: 'Next', cell: ({ next }) => ago(next) },
        { title: 'Kind', cell: ({ kind }) => kind ?? '–' },
        { title: 'Ticks', class: 'number', cell: ({ ticked }) => count(ticked) },
        { title: 'Last', cell: (row) => ago(row.last_tick) },
      ] }),
    rows.length > 0 && h('p', { class: 'quiet', role: 'status' }, `${count(rows.length)} loaded${next === null ? ', that is all' : ''}`),
    next !== null && h('button', { type: 'button', onclick: more }, 'Show more'));
  };
  await refresh({ left, load });
}
