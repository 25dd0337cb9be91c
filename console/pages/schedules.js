// The list of schedules.

import { get } from '../api.js';
import { h, update } from '../dom.js';
import { ago, badge, count, instant, term } from '../format.js';
import { refresh } from '../refresh.js';
import { table } from '../table.js';

/** A rule in a few words. */
export function when(rule) {
  if (!rule) return '–';
  if (rule.cron) return h('span', {}, h('code', {}, rule.cron), rule.zone ? ` ${rule.zone}` : '');
  if (rule.every) return `every ${term(rule.every)}`;
  return rule.at ? ['at ', instant(rule.at)] : JSON.stringify(rule);
}

const state = ({ state: name, error }) => (error ? h('span', { class: 'error' }, error) : badge(name));

export async function schedules({ root, left }) {
  const load = async () => {
    const rows = await get('/v1/schedules', {}, left);
    update(root, h('h1', {}, 'Schedules'), rows.length === 0
      ? h('section', { class: 'empty' }, h('h2', {}, 'No schedules'),
        h('p', {}, 'Add one with ', h('code', {}, `bellwether schedule add nightly sum '[1, 2]' --cron '30 2 * * *'`), '.'))
      : table({ caption: 'Schedules', key: ({ id }) => id, rows, columns: [
        { title: 'Schedule', cell: ({ id }) => h('a', { href: `#/schedules/${encodeURIComponent(id)}` }, id) },
        { title: 'State', cell: state },
        { title: 'When', cell: (row) => when(row.when) },
        { title: 'Next', cell: ({ next }) => ago(next) },
        { title: 'Kind', cell: ({ kind }) => kind ?? '–' },
        { title: 'Ticks', class: 'number', cell: ({ ticked }) => count(ticked) },
        { title: 'Last', cell: (row) => ago(row.last_tick) },
      ] }));
  };
  await refresh({ left, load });
}
