// Kinds of jobs: their workers, pauses, rates and run times.

import { get, may, post } from '../api.js';
import { ask, h, notify, update } from '../dom.js';
import { ago, badge, count, duration, milliseconds, rate, term } from '../format.js';
import { refresh } from '../refresh.js';
import { table } from '../table.js';

/** A run time of the API, which counts whole milliseconds. */
const runTime = (text) => (text === '0s' ? '< 1 ms' : term(text));

export async function kinds({ root, left }) {
  const load = async () => {
    const [served, statistics] = await Promise.all([get('/v1/kinds', {}, left), get('/v1/kinds/statistics', {}, left)]);
    const known = new Map(statistics.kinds.map((of) => [of.kind, of]));
    // A kind may have ended jobs and no worker any more.
    const gone = statistics.kinds.filter(({ kind }) => !served.some((row) => row.kind === kind));
    const rows = [...served, ...gone.map(({ kind }) => ({ kind, workers: [], paused_on: [], slots: 0, assigned: 0, paused: null }))];
    const rateOf = (kind, name) => {
      const value = known.get(kind)?.[name];
      return value === undefined || value === null ? '–' : rate(60 * value);
    };
    const change = (kind, action) => async () => {
      const pause = action === 'pause' && await ask({
        title: `Pause kind ${kind}?`, action: 'Pause', danger: true,
        body: [h('p', {}, 'No worker of the namespace starts jobs of this kind until it is resumed. Running jobs finish.'),
          h('label', {}, 'Reason', h('input', { name: 'note', maxlength: 256 }))],
      });
      if (action === 'pause' && !pause) return;
      try {
        const { outcome } = await post(`/v1/kinds/${encodeURIComponent(kind)}/${action}`, pause.note ? { note: pause.note } : undefined);
        notify(`${kind}: ${outcome.replaceAll('_', ' ')}.`);
        await load();
      } catch (error) {
        notify(error.message, { error: true });
      }
    };
    update(root, h('h1', {}, 'Kinds'), rows.length === 0
      ? h('section', { class: 'empty' }, h('h2', {}, 'No kinds'), h('p', {}, 'Kinds appear when a worker with handlers starts: ', h('code', {}, 'bellwether node'), '.'))
      : table({ caption: 'Kinds', key: ({ kind }) => kind, rows, columns: [
        { title: 'Kind', cell: ({ kind }) => h('a', { href: `#/jobs?kind=${encodeURIComponent(kind)}` }, kind) },
        { title: 'State', cell: ({ paused, workers, paused_on: elsewhere }) => (paused
          ? [badge('paused'), paused.by ? ` by ${paused.by}, ` : ' ', ago(paused.since), paused.note ? `: ${paused.note}` : '']
          : !workers.length ? h('span', { class: 'error' }, 'no worker')
            : elsewhere.length ? [badge('paused'), ` on ${count(elsewhere.length)} of its workers`] : badge('ready')) },
        { title: 'Workers', class: 'number', cell: ({ workers }) => count(workers.length) },
        { title: 'Busy', class: 'number', cell: ({ assigned, slots }) => `${count(assigned)} of ${count(slots)}` },
        { title: 'Succeeded / min', class: 'number', cell: ({ kind }) => rateOf(kind, 'succeeded_per_second') },
        { title: 'Dead / min', class: 'number', cell: ({ kind }) => rateOf(kind, 'dead_per_second') },
        { title: 'Run time p50', class: 'number', cell: ({ kind }) => runTime(known.get(kind)?.run_time?.p50) },
        { title: 'Run time p99', class: 'number', cell: ({ kind }) => {
          const run = known.get(kind)?.run_time;
          return run ? h('span', { title: `of ${count(run.jobs)} jobs` }, runTime(run.p99)) : '–';
        } },
        { title: 'Action', cell: ({ kind, paused }) => h('button', {
          type: 'button', disabled: !may('operate'), title: may('operate') ? null : 'needs the role operate',
          onclick: change(kind, paused ? 'resume' : 'pause'), 'aria-label': `${paused ? 'Resume' : 'Pause'} ${kind}`,
        }, paused ? 'Resume' : 'Pause') },
      ] }), rows.length > 0 && h('p', { class: 'quiet' },
      `Rates of the last ${term(statistics.window)}, of which this gateway has counted ${duration(milliseconds(statistics.observed))}; run times of the last hour, `,
      'as far as counted. It counts while at most 100 jobs per second end, or a console is open.', statistics.incomplete && ' It missed some jobs: the rates are too low.'));
  };
  await refresh({ left, load });
}
