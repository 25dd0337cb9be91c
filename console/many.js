// Changes of many jobs, each after a confirmation that states to how many of them it applies.

import { jobPath, post } from './api.js';
import { ask, h, notify } from './dom.js';
import { count } from './format.js';

/** Requests of one change that are in flight at a time. */
const AT_ONCE = 8;
/** Jobs of one request to purge. */
const PURGED_AT_ONCE = 1_000;
/** A purge continues after its time limit, but not forever. */
const PURGE_REQUESTS = 10;

/** Carries out `change(id)` for all ids, and returns how many were changed and the first errors. */
async function each(ids, change, progress) {
  const waiting = [...ids];
  const errors = [];
  let done = 0;
  const one = async () => {
    for (let id = waiting.shift(); id !== undefined; id = waiting.shift()) {
      try {
        await change(id);
      } catch (error) {
        errors.push(`${id}: ${error.message}`);
      }
      progress((done += 1));
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, one));
  return { changed: ids.length - errors.length, errors };
}

const jobs = (number) => `${count(number)} ${number === 1 ? 'job' : 'jobs'}`;

export const ACTIONS = {
  cancel: { name: 'Cancel', past: 'cancelled', applies: ({ state }) => ['queued', 'delayed', 'running'].includes(state) },
  retry: { name: 'Retry', past: 'retried', applies: ({ state }) => ['dead', 'cancelled'].includes(state) },
};

/** Returns whether it was confirmed. */
export async function changeMany(action, chosen) {
  const { name, past, applies } = ACTIONS[action];
  const matching = chosen.filter(applies);
  const data = await ask({
    title: `${name} ${count(matching.length)} of ${count(chosen.length)} selected jobs?`,
    action: `${name} ${jobs(matching.length)}`, danger: action === 'cancel', dismiss: action === 'cancel' ? 'Keep them' : undefined,
    body: [
      matching.length < chosen.length && h('p', {}, `The other ${count(chosen.length - matching.length)} cannot be ${past} in their state.`),
      h('p', {}, 'The first ones: ', matching.slice(0, 10).map(({ id }) => [h('code', {}, id), ' '])),
    ],
  });
  if (!data || !matching.length) return false;
  const bar = h('progress', { max: matching.length, value: 0, 'aria-label': `${name}` });
  document.getElementById('notices').append(bar);
  const { changed, errors } = await each(matching.map(({ id }) => id), (id) => post(jobPath(id, `/${action}`)), (done) => {
    bar.value = done;
  });
  bar.remove();
  notify(`${jobs(changed)} ${past}.`);
  if (errors.length) notify(`${count(errors.length)} failed. ${errors.slice(0, 3).join(' ')}`, { error: true });
  return true;
}

/** Purges jobs, and continues where the gateway's time limit ended a request. */
async function purge(ids, remove) {
  const sum = { matched: 0, removed: 0, too_recent: 0 };
  for (let at = 0; at < ids.length; at += PURGED_AT_ONCE) {
    const jobs = ids.slice(at, at + PURGED_AT_ONCE);
    for (let request = 0, complete = false; !complete; request += 1) {
      if (request === PURGE_REQUESTS) throw new Error('The purge takes too long: try again with fewer jobs.');
      const done = await post('/v1/purge', { jobs, remove });
      complete = done.complete;
      // Only a removal continues where it ended; a count begins again.
      if (remove || complete) for (const name of Object.keys(sum)) sum[name] += done[name];
    }
  }
  return sum;
}

/** Removes the records of ended jobs after it has counted them. Returns whether it was confirmed. */
export async function purgeMany(chosen) {
  const ids = chosen.map(({ id }) => id);
  try {
    const { matched, too_recent: tooRecent } = await purge(ids, false);
    const rest = ids.length - matched - tooRecent;
    const sure = await ask({
      title: `Remove ${count(matched)} of ${count(ids.length)} selected records?`, action: 'Remove', danger: true,
      body: [
        tooRecent > 0 && h('p', {}, `Kept because they ended within the last minute: ${count(tooRecent)}.`),
        rest > 0 && h('p', {}, `Kept because they have not ended, belong to a group, or cannot be read: ${count(rest)}.`),
        h('p', {}, 'The results are deleted, and the ids can be used again. This cannot be undone.'),
      ],
    });
    if (!sure || !matched) return false;
    const { removed } = await purge(ids, true);
    notify(`${count(removed)} ${removed === 1 ? 'record' : 'records'} removed.`);
    return true;
  } catch (error) {
    notify(error.message, { error: true });
    return false;
  }
}
