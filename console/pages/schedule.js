// One schedule: its rule, its next and last ticks, and changes of it.

import { call, get, may, post } from '../api.js';
import { ask, h, notify, update } from '../dom.js';
import { ago, badge, count, instant, term } from '../format.js';
import { stored, view } from '../payload.js';
import { refresh } from '../refresh.js';
import { table } from '../table.js';
import { jobLink } from './jobs.js';
import { when } from './schedules.js';

const path = (id, rest = '') => `/v1/schedules/${encodeURIComponent(id)}${rest}`;

/** The fields of a rule that the form has, as the API takes them. */
function ruleOf(data) {
  if (data.rule === 'every') return { every: data.time, anchor: data.more || undefined };
  return data.rule === 'at' ? { at: data.time } : { cron: data.time, zone: data.more || 'UTC' };
}

function misfireOf({ misfire, catch_up_limit: most, catch_up_within: within }) {
  return misfire === 'catch_up' ? { misfire, catch_up_limit: Number(most), catch_up_within: within } : { misfire };
}

/** The policies in words. */
const MISFIRE = [['skip', 'no job'], ['once', 'one job for all'], ['catch_up', 'a job each']];
const OVERLAP = [['allow', 'submits its job'], ['forbid', 'is skipped'], ['queue', 'submits a job that waits']];
const word = (policies, name) => policies.find(([policy]) => policy === name)?.[1] ?? name;

const LABELS = { cron: ['Cron expression', 'Zone'], every: ['Interval, such as 15m', 'Anchor, such as 2026-11-21T00:00:00Z'], at: ['Instant, such as 2026-11-21T11:33:00Z', ''] };

/** Asks for a change of the schedule, and shows the next ticks of the rule while it is typed. */
async function edit(found, left) {
  const [rule, time, more] = found.cron ? ['cron', found.cron, found.zone]
    : found.every ? ['every', found.every, found.anchor] : ['at', found.at, ''];
  const select = (name, choices, chosen) => h('select', { name }, choices.map(([value, text]) =>
    h('option', { value, selected: value === chosen }, text)));
  const [timeLabel, moreLabel] = [h('span', {}, LABELS[rule][0]), h('span', {}, LABELS[rule][1])];
  const eachJob = [
    h('label', {}, 'A job each: at most', h('input', { name: 'catch_up_limit', type: 'number', min: 1, max: 100, value: found.catch_up_limit ?? 10 })),
    h('label', {}, 'A job each: not older than', h('input', { name: 'catch_up_within', value: found.catch_up_within ?? '1d' }))];
  const preview = h('div', { class: 'preview', role: 'status', 'aria-label': 'Next ticks' });
  let asked = 0;
  const show = async (form) => {
    const data = Object.fromEntries(new FormData(form));
    [timeLabel.textContent, moreLabel.textContent] = LABELS[data.rule];
    moreLabel.parentElement.hidden = data.rule === 'at';
    for (const label of eachJob) label.hidden = data.misfire !== 'catch_up';
    const mine = (asked += 1);
    try {
      const { next } = await get('/v1/ticks', ruleOf(data), left);
      if (mine === asked) update(preview, h('p', {}, 'Next ticks:'), next.length ? h('ol', {}, next.map((at) => h('li', {}, instant(at)))) : h('p', {}, 'none'));
    } catch (error) {
      if (mine === asked && error.name !== 'AbortError') update(preview, h('p', { class: 'error' }, error.message));
    }
  };
  const fields = h('div', { oninput: ({ target }) => show(target.form) },
    h('label', {}, 'Rule', select('rule', [['cron', 'cron expression'], ['every', 'interval'], ['at', 'once']], rule)),
    h('label', {}, timeLabel, h('input', { name: 'time', value: time, required: true, autocomplete: 'off' })),
    h('label', { hidden: rule === 'at' }, moreLabel, h('input', { name: 'more', value: more, autocomplete: 'off' })),
    h('label', {}, 'Missed ticks', select('misfire', MISFIRE, found.misfire)),
    eachJob,
    h('label', {}, 'Tick while the last job is open', select('overlap', OVERLAP, found.overlap)),
    h('label', {}, 'A tick is missed after', h('input', { name: 'grace', value: found.grace, required: true })));
  const asking = ask({ title: `Edit ${found.id}`, action: 'Save', body: [fields, preview] });
  show(fields.closest('form'));
  const data = await asking;
  if (!data) return false;
  const body = { ...ruleOf(data), ...misfireOf(data), overlap: data.overlap, grace: data.grace };
  await call('PATCH', path(found.id), { body });
  notify(`${found.id} was changed.`);
  return true;
}

const nextTicks = (next) => h('section', {}, h('h2', {}, 'Next ticks'), next.length
  ? h('ol', {}, next.map((at) => h('li', {}, instant(at), ' (', ago(at), ')'))) : h('p', { class: 'quiet' }, 'There are none.'));

const lastTicks = (last) => h('section', {}, h('h2', {}, 'Last ticks'), last.length
  ? table({ caption: 'Last ticks', key: ({ at }) => at, rows: last, columns: [
    { title: 'Tick', cell: ({ at }) => instant(at) },
    { title: 'State', cell: ({ state }) => (state ? badge(state) : '–') },
    { title: 'Job', cell: ({ job }) => (job ? jobLink(job) : h('span', { class: 'quiet' }, 'none, or its record was removed')) },
  ] })
  : h('p', { class: 'quiet' }, 'There are none since the schedule was added.'));

/** Reads the payload of the jobs, and again only for another version of the schedule, or another schedule of this id. */
function payloadOf(id, left) {
  let kept = {};
  return async ({ error, created_at: created, spec_version: spec }) => {
    if (error) return null;
    const version = `${created} ${spec}`;
    if (kept.version !== version) kept = { version, found: await stored(path(id, '/payload'), left) };
    return kept.found;
  };
}

export async function schedule({ root, parameter: id, left }) {
  const read = payloadOf(id, left);
  let form;
  let shown;
  const load = async () => {
    const found = await get(path(id), {}, left);
    shown = [found, found.error ? { next: [], last: [] } : await get(path(id, '/ticks'), {}, left), await read(found)];
    draw();
  };
  const draw = () => {
    const [found, around, payload] = shown;
    const guarded = (run) => async () => {
      try {
        await run();
      } catch (error) {
        notify(error.message, { error: true });
      }
    };
    const change = (action, text) => guarded(async () => {
      if (text && !await ask({ title: `${action === 'remove' ? 'Remove' : 'Trigger'} ${id}?`, action: action === 'remove' ? 'Remove' : 'Trigger', danger: action === 'remove', body: h('p', {}, text) })) return;
      const answer = action === 'remove' ? await call('DELETE', path(id)) : await post(path(id, `/${action}`));
      notify(action === 'trigger' ? `${id}: submitted ${answer.id}.` : `${id}: done.`);
      if (action === 'remove') location.hash = '#/schedules';
      else await load();
    });
    const button = (name, run, { danger = false, possible = true } = {}) => h('button', {
      type: 'button', disabled: !may('operate') || !possible, title: may('operate') ? null : 'needs the role operate', class: danger ? 'danger' : '', onclick: run,
    }, name);
    const facts = [
      ['When', when(found)], ['Next', [instant(found.next), ' (', ago(found.next), ')']], ['Kind', found.kind],
      ['Last tick', found.last_tick && instant(found.last_tick)], ['Last job', found.last_job && jobLink(found.last_job)],
      ['Ticks', count(found.ticked)], ['Skipped', count(found.skipped)],
      ['Last skipped', found.last_skipped && [`${count(found.last_skipped.count)}, because of ${found.last_skipped.reason.replaceAll('_', ' ')}, until `, instant(found.last_skipped.through)]],
      ['Missed ticks', found.misfire && (found.catch_up_limit ? `a job each, at most ${found.catch_up_limit} within ${term(found.catch_up_within)}` : word(MISFIRE, found.misfire))],
      ['Missed after', found.grace && term(found.grace)], ['Tick while a job is open', found.overlap && word(OVERLAP, found.overlap)], ['Job id', found.job_id], ['Created', found.created_at && instant(found.created_at)],
    ];
    update(root,
      h('div', { class: 'row' }, h('h1', { class: 'grow' }, id), found.error ? h('span', { class: 'error' }, found.error) : badge(found.state),
        button('Trigger now', change('trigger', 'It submits a job now, in addition to its ticks.')),
        found.paused ? button('Resume', change('resume')) : button('Pause', change('pause')),
        button('Edit', guarded(async () => await edit(found, left) && load()), { possible: !found.error }),
        button('Remove', change('remove', 'Its jobs stay.'), { danger: true })),
      h('div', { class: 'columns' },
        h('section', {}, h('h2', {}, 'Rule'), h('dl', {}, facts.filter(([, value]) => value).map(([name, value]) => [h('dt', {}, name), h('dd', {}, value)]))),
        nextTicks(around.next)),
      lastTicks(around.last),
      payload && view('Payload', payload, form, (chosen) => {
        form = chosen;
        draw();
      }),
      h('section', {}, h('h2', {}, 'Options of its jobs'), h('pre', { tabindex: 0, 'aria-label': 'Options' }, JSON.stringify(found.options, null, 2))));
  };
  await refresh({ left, load });
}
