// One job: what happened, why it waits, its data, and what can be done with it.

import { get, jobPath, may, post } from '../api.js';
import { ask, h, notify, update } from '../dom.js';
import { ago, badge, count, instant, span, term } from '../format.js';
import { stored, view } from '../payload.js';
import { refresh } from '../refresh.js';

const OPEN = ['queued', 'delayed', 'running'];

const OUTCOMES = {
  succeeded: 'succeeded',
  failed: 'failed',
  lost: 'was lost with its worker',
  released: 'was handed back',
  cancelled: 'was cancelled',
  invalid: 'found the job invalid',
  snoozed: 'asked to run again later',
  lease_expired: 'did not renew its lease',
  expired: 'was too late to start',
};
const BAD = ['failed', 'lost', 'invalid', 'lease_expired', 'expired'];

function attemptStep(job, { generation, attempt, worker, assigned_at: from, ended_at: to, outcome, error }) {
  return h('li', { class: BAD.includes(outcome) ? 'bad' : '' },
    generation === job.generation ? '' : `Run ${generation}: `,
    `Attempt ${attempt} ${OUTCOMES[outcome] ?? outcome}${from ? ` after ${span(from, to)}` : ''}, `, instant(to), ' ',
    h('small', {}, 'worker ', h('span', { class: 'mono' }, worker)), error && h('small', { class: 'error' }, error));
}

/** The submission, the closed attempts, and what goes on now. */
function timeline(job) {
  const closed = job.attempt - (job.state === 'running' ? 1 : 0);
  const omitted = closed - job.attempts.filter(({ generation }) => generation === job.generation).length;
  const submitted = job.submitted_at && h('li', {}, 'Submitted ', instant(job.submitted_at), job.generation > 1 ? ` (run ${job.generation} of this id)` : '');
  const steps = [
    job.attempts.filter(({ generation }) => generation < job.generation).map((past) => attemptStep(job, past)),
    submitted,
    omitted > 0 && h('li', {}, `${count(omitted)} earlier ${omitted === 1 ? 'attempt is' : 'attempts are'} not listed`),
    job.attempts.filter(({ generation }) => generation === job.generation).map((past) => attemptStep(job, past)),
    job.not_before && job.state === 'delayed' && h('li', {}, `Attempt ${job.attempt + 1} starts `, ago(job.not_before)),
    job.state === 'running' && h('li', {}, `Attempt ${job.attempt} runs on `, h('a', { href: `#/workers/${job.worker}` }, job.node ?? job.worker),
      job.assigned_at && [', assigned ', ago(job.assigned_at)]),
    job.cancel_requested && job.state === 'running' && h('li', {}, 'Cancellation was requested'),
    job.changed && h('li', {}, `Last changed (${job.changed.what}) by ${job.changed.by} `, ago(job.changed.at)),
    job.finished_at && h('li', { class: job.state === 'dead' ? 'bad' : '' },
      `Ended as ${job.state}, `, instant(job.finished_at), `, ${span(job.submitted_at, job.finished_at)} after the submission`),
  ];
  return h('ol', { class: 'timeline' }, steps);
}

/**
 * Reads payload, result and checkpoint, and those that cannot have changed only once. The payload changes with the run of the id, the
 * result with the end of a run, and the checkpoint while the job is open.
 */
function dataOf(id, left) {
  const kept = new Map();
  return async (job) => {
    const wanted = [
      ['Payload', 'payload', job.kind !== null, `${job.generation}`],
      ['Result', 'result', job.state === 'succeeded', `${job.generation} ${job.finished_at}`],
      ['Checkpoint', 'checkpoint', job.checkpoint_bytes !== null, OPEN.includes(job.state) ? null : job.finished_at],
    ];
    for (const [title, name, exists, version] of wanted) {
      if (!exists) kept.delete(title);
      else if (version === null || kept.get(title)?.version !== version) {
        try {
          kept.set(title, { version, found: await stored(jobPath(id, `/${name}`), left) });
        } catch (error) {
          // The job has changed since it was read.
          if (error.status !== 404) throw error;
          kept.delete(title);
        }
      }
    }
    return new Map([...kept].map(([title, { found }]) => [title, found]));
  };
}

const link = (page, id) => h('a', { href: `#/${page}/${encodeURIComponent(id)}` }, id);

function facts(job) {
  const { options } = job;
  const list = [
    ['Kind', job.kind],
    ['Worker', job.worker && [job.node ? `${job.node} ` : '', h('a', { class: 'mono', href: `#/workers/${job.worker}` }, job.worker)]],
    ['Group', job.group && link('groups', job.group)],
    ['Sub-jobs', job.sub_jobs.map((id) => [link('groups', id), ' '])],
    ['Lane', options?.lane && h('a', { href: `#/jobs?lane=${encodeURIComponent(options.lane)}` }, options.lane)],
    ['Waits behind', job.behind && link('jobs', job.behind)],
    ['Lease', job.lease && term(job.lease)],
    ['Expires', job.expires_at && instant(job.expires_at)],
    ['Trace', job.trace_id && h('span', { class: 'mono' }, job.trace_id)],
    ['Priority', options?.priority],
    ['Tags', options?.tags?.join(', ')],
    ['Timeout', options?.timeout && term(options.timeout)],
    ['Backoff', options && `${term(options.backoff.initial)} to ${term(options.backoff.max)}`],
    ['Failures', options && `${count(job.failures)} of at most ${count(options.max_attempts)}`],
    ['Losses', options && `${count(job.losses)} of at most ${count(options.max_losses)}`],
  ];
  return h('dl', {}, list.filter(([, value]) => value === 0 || (value && value.length !== 0)).map(([name, value]) => [h('dt', {}, name), h('dd', {}, value)]));
}

async function change(id, action) {
  const cancel = action === 'cancel';
  const sure = await ask({
    title: cancel ? `Cancel ${id}?` : `Retry ${id}?`, action: cancel ? 'Cancel the job' : 'Retry the job', danger: cancel, dismiss: cancel ? 'Keep the job' : undefined,
    body: h('p', {}, cancel ? 'A waiting job ends now. A running handler is asked to stop.' : 'The job starts again as a new run, with all its attempts.'),
  });
  if (!sure) return;
  try {
    const { outcome } = await post(jobPath(id, `/${action}`));
    notify(`${id}: ${outcome.replaceAll('_', ' ')}.`);
  } catch (error) {
    notify(error.message, { error: true });
  }
}

export async function job({ root, parameter: id, left }) {
  const forms = new Map();
  const read = dataOf(id, left);
  let shown;
  const draw = () => {
    const [found, explanation, data] = shown;
    const section = (title) => data.has(title) && view(title, data.get(title), forms.get(title), (form) => {
      forms.set(title, form);
      draw();
    });
    const button = (action, text, states) => h('button', {
      type: 'button', disabled: !may('operate') || !states.includes(found.state), title: may('operate') ? null : 'needs the role operate',
      class: action === 'cancel' ? 'danger' : '', onclick: () => change(id, action),
    }, text);
    update(root,
      h('div', { class: 'row' }, h('h1', { class: 'grow' }, id), badge(found.state),
        button('retry', 'Retry', ['dead', 'cancelled']), button('cancel', 'Cancel', OPEN)),
      explanation && h('section', { class: 'warnings' }, h('h2', {}, 'Why it is not running'), h('p', {}, explanation.sentence)),
      found.state === 'running' && (found.percent !== null || found.message) && h('section', {}, h('h2', {}, 'Progress'),
        found.percent !== null && h('progress', { max: 100, value: found.percent, 'aria-label': 'Progress' }),
        h('p', {}, found.percent !== null ? `${found.percent} % ` : '', found.message ?? '')),
      found.error && h('section', {}, h('h2', {}, 'Error'), h('pre', { class: 'error', tabindex: 0, 'aria-label': 'Error' }, found.error)),
      h('div', { class: 'columns' },
        h('section', {}, h('h2', {}, 'What happened'), timeline(found)),
        h('section', {}, h('h2', {}, 'Details'), facts(found))),
      ['Payload', 'Result', 'Checkpoint'].map(section));
  };
  const load = async () => {
    const found = await get(jobPath(id), {}, left);
    const waits = ['queued', 'delayed', 'quarantined'].includes(found.state);
    shown = [found, waits ? await get(jobPath(id, '/explain'), {}, left) : null, await read(found)];
    draw();
  };
  await refresh({ left, load, concerns: (event) => event.job === id, failed: (error) => notify(error.message, { error: true }) });
}
