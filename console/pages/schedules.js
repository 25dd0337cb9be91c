// Schedules and their ticks.

import { call, get, may, post } from '../api.js';
import { ask, h, notify, update } from '../dom.js';
import { ago, badge, count, instant } from '../format.js';
import { refresh } from '../refresh.js';
import { table } from '../table.js';
import { jobLink } from './jobs.js';

const path = (id, rest = '') => `/v1/schedules/${encodeURIComponent(id)}${rest}`;

function when(rule) {
  if (!rule) return '–';
  if (rule.cron) return h('span', {}, h('code', {}, rule.cron), rule.zone ? ` ${rule.zone}` : '');
  if (rule.every) return `every ${rule.every}`;
  return rule.at ? ['at ', instant(rule.at)] : JSON.stringify(rule);
}

const state = ({ state: name, error }) => (error ? h('span', { class: 'error' }, error) : badge(name));

export async function schedules({ root, left }) {
  const load = async () => {
    const rows = await get('/v1/schedules', {}, left);
    update(root, h('h1', {}, 'Schedules'), rows.length === 0
      ? h('section', { class: 'empty' }, h('h2', {}, 'No schedules'),
        h('p', {}, 'Add one with ', h('code', {}, `bellwether schedule add nightly --cron '30 2 * * *' report`), '.'))
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

export async function schedule({ root, parameter: id, left }) {
  const load = async () => {
    const found = await get(path(id), {}, left);
    const change = (action, text) => async () => {
      if (text && !await ask({ title: `${action === 'remove' ? 'Remove' : 'Trigger'} ${id}?`, action: action === 'remove' ? 'Remove' : 'Trigger', danger: action === 'remove', body: h('p', {}, text) })) return;
      try {
        const answer = action === 'remove' ? await call('DELETE', path(id)) : await post(path(id, `/${action}`));
        notify(answer?.job ?? answer?.id ? `${id}: submitted ${answer.job ?? answer.id}.` : `${id}: done.`);
        if (action === 'remove') location.hash = '#/schedules';
        else await load();
      } catch (error) {
        notify(error.message, { error: true });
      }
    };
    const button = (action, name, text) => h('button', {
      type: 'button', disabled: !may('operate'), title: may('operate') ? null : 'needs the role operate', class: action === 'remove' ? 'danger' : '', onclick: change(action, text),
    }, name);
    const facts = [
      ['When', when(found.when)], ['Next', [instant(found.next), ' (', ago(found.next), ')']], ['Kind', found.kind],
      ['Last tick', found.last_tick && instant(found.last_tick)], ['Last job', found.last_job && jobLink(found.last_job)],
      ['Ticks', count(found.ticked)], ['Skipped', count(found.passed_over)], ['Missed ticks', found.misfire], ['Overlap', found.overlap],
      ['Grace', found.grace], ['Job id', found.job_id], ['Created', found.created_at && instant(found.created_at)],
    ];
    update(root,
      h('div', { class: 'row' }, h('h1', { class: 'grow' }, id), state(found),
        button('trigger', 'Trigger now', 'It submits a job now, in addition to its ticks.'),
        found.paused ? button('resume', 'Resume') : button('pause', 'Pause'),
        button('remove', 'Remove', 'Its jobs stay.')),
      h('section', {}, h('dl', {}, facts.filter(([, value]) => value).map(([name, value]) => [h('dt', {}, name), h('dd', {}, value)]))),
      h('section', {}, h('h2', {}, 'Options of its jobs'), h('pre', { tabindex: 0, 'aria-label': 'Options' }, JSON.stringify(found.options, null, 2))));
  };
  await refresh({ left, load });
}
