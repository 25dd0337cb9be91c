// How long ended jobs are kept, and removing them earlier.

import { call, get, may, post } from '../api.js';
import { ask, h, notify, update } from '../dom.js';
import { ago, count, elapsed } from '../format.js';

const STATES = ['succeeded', 'cancelled', 'dead'];

async function purge(kept, again) {
  const data = await ask({
    title: 'Remove records of ended jobs', action: 'Count first',
    body: [
      h('label', {}, 'State', h('select', { name: 'state' }, STATES.map((state) => h('option', {}, state)))),
      h('label', {}, 'Kind (empty: all)', h('input', { name: 'kind' })),
      h('label', {}, 'Ended longer ago than', h('input', { name: 'older_than', value: '1h', required: true })),
    ],
  });
  if (!data) return;
  const body = { state: data.state, ...(data.kind ? { kind: data.kind } : {}), older_than: data.older_than };
  const counted = await post('/v1/purge', { ...body, remove: false });
  const sure = await ask({
    title: `Remove ${count(counted.matched)}${counted.complete ? '' : ' or more'} records?`, action: 'Remove', danger: true,
    body: h('p', {}, `${data.state} jobs${data.kind ? ` of kind ${data.kind}` : ''} that ended more than ${data.older_than} ago. This cannot be undone.`),
  });
  if (!sure) return;
  const { removed, complete } = await post('/v1/purge', { ...body, remove: true });
  notify(`${count(removed)} records removed${complete ? '' : '; there are more: repeat it'}.`);
  again();
}

/** Who set this last, if it is known. */
const lastChange = (setting) => setting?.changed && h('p', { class: 'quiet' }, `Set by ${setting.changed.by} `, ago(setting.changed.at));

export async function settings({ root, left }) {
  const guarded = (run) => async (event) => {
    event.preventDefault();
    try {
      await run(event);
    } catch (error) {
      notify(error.message, { error: true });
    }
  };
  const load = async () => {
    const [kept, placement, leader] = await Promise.all([
      get('/v1/retention', {}, left),
      get('/v1/placement', {}, left),
      get('/v1/leader', {}, left).catch((error) => (error.status === 404 ? null : Promise.reject(error))),
    ]);
    const field = (name, label) => h('label', {}, label, h('input', { name, value: kept[name], required: true, disabled: !may('admin') }));
    const save = guarded(async ({ target }) => {
      const given = Object.fromEntries(new FormData(target));
      const changed = Object.entries(given).filter(([name, value]) => value !== String(kept[name]));
      if (!changed.length) return notify('Nothing was changed.');
      await call('PATCH', '/v1/retention', { body: Object.fromEntries(changed.map(([name, value]) => [name, name === 'records' ? Number(value) : value])) });
      notify('The retention was changed.');
      return load();
    });
    const place = guarded(async ({ target }) => {
      await call('PATCH', '/v1/placement', { body: { strategy: new FormData(target).get('strategy').trim() } });
      notify('The placement was changed.');
      return load();
    });
    update(root,
      h('h1', {}, 'Settings'),
      h('section', {}, h('h2', {}, 'Leader'), leader
        ? h('dl', {}, [['Node', leader.node], ['Epoch', leader.epoch], ['Leads for', leader.standing ? elapsed(leader.since) : 'no longer: it has ended'], ['Session', h('span', { class: 'mono' }, leader.session)]]
          .map(([name, value]) => [h('dt', {}, name), h('dd', {}, value)]))
        : h('p', {}, 'There has never been a leader.')),
      h('section', {}, h('h2', {}, 'Placement'),
        h('p', { class: 'quiet' }, 'How the leader chooses a worker for a job. A leader that has no strategy of this name uses least-loaded.'),
        h('form', { class: 'row', onsubmit: place },
          h('label', {}, 'Strategy', h('input', { name: 'strategy', value: placement.strategy, list: 'strategies', required: true, disabled: !may('admin') })),
          h('datalist', { id: 'strategies' }, placement.choices.map((name) => h('option', { value: name }))),
          h('button', { class: 'primary', disabled: !may('admin'), title: may('admin') ? null : 'needs the role admin' }, 'Set')),
        lastChange(placement)),
      h('section', {}, h('h2', {}, 'Retention'),
        h('p', { class: 'quiet' }, 'How long records of ended jobs are kept, and how many at most.'),
        h('form', { class: 'row', onsubmit: save }, field('succeeded', 'Succeeded'), field('cancelled', 'Cancelled'), field('dead', 'Dead'), field('records', 'Records at most'),
          h('button', { class: 'primary', disabled: !may('admin'), title: may('admin') ? null : 'needs the role admin' }, 'Save')),
        lastChange(kept)),
      h('section', {}, h('h2', {}, 'Purge'),
        h('p', { class: 'quiet' }, 'Removes records of ended jobs before their retention is over. It counts them first.'),
        h('button', { type: 'button', class: 'danger', disabled: !may('admin'), title: may('admin') ? null : 'needs the role admin', onclick: guarded(() => purge(kept, load)) }, 'Purge…')));
  };
  await load();
}
