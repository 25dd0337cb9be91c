// The state of the cluster on one page.

import { get } from '../api.js';
import { chart } from '../chart.js';
import { h, update } from '../dom.js';
import { count, duration, elapsed, milliseconds } from '../format.js';
import { refresh } from '../refresh.js';

const jobs = (text) => `${count(text)} ${text === 1 ? 'job' : 'jobs'}`;

/** The alerts of the gateway that answers. */
const alertList = (alerts) => h('section', { class: 'warnings', 'aria-label': 'Alerts' }, h('h2', {}, 'Alerts'),
  h('ul', {}, alerts.map(({ name, severity, summary, since, runbook }) => h('li', { 'data-key': name },
    h('b', { class: severity === 'critical' ? 'error' : '' }, `${severity}: `), summary, ', for ', elapsed(since), ' (',
    h('a', { href: runbook, target: '_blank', rel: 'noopener' }, name), ')'))));

/** What needs attention: sentences with links. */
function warnings({ leader, workers, kinds, jobs: depths, wrong_clocks: clocks }) {
  const found = [];
  if (!leader) found.push('There has never been a leader: no node has started here.');
  else if (!leader.standing) found.push(`The leader ${leader.node} has ended, and no other node has taken over yet.`);
  if (!workers.length) found.push(['There are no workers. Start one with ', h('code', {}, 'bellwether node'), '.']);
  if (depths.orphaned) found.push(`${jobs(depths.orphaned)} of lost workers wait for the leader.`);
  if (depths.quarantined) {
    found.push([h('a', { href: '#/jobs?state=quarantined' }, jobs(depths.quarantined)), ' cannot be read and are in quarantine.']);
  }
  // The processes of a host have the same clock.
  for (const [host, ahead] of new Map(clocks.map(({ host, ahead_seconds: seconds }) => [host, seconds]))) {
    found.push(`The clock of ${host} is ${duration(1_000 * Math.abs(ahead))} ${ahead < 0 ? 'behind' : 'ahead of'} ZooKeeper's.`);
  }
  for (const { kind, workers: servers, paused } of kinds) {
    const name = h('a', { href: '#/kinds' }, kind);
    if (paused) found.push(['Kind ', name, ' is paused', paused.by ? ` by ${paused.by}` : '', paused.note ? `: ${paused.note}` : '', '.']);
    else if (!servers.length) found.push(['No worker serves kind ', name, '.']);
  }
  for (const { id, node, error, shunned_until: until, draining } of workers) {
    const name = h('a', { href: `#/workers/${encodeURIComponent(id)}` }, node ?? id);
    if (error) found.push(['The registration of worker ', name, ` cannot be read: ${error}`]);
    if (until) found.push(['Worker ', name, ' gets no jobs for a while, because it handed back too many.']);
    if (draining) found.push(['Worker ', name, ' is draining.']);
  }
  return found;
}

const card = (title, value, note, href) => h('a', { class: 'card', href }, h('small', {}, title), h('b', {}, value), h('small', {}, note));

/** The jobs that died while this gateway counted. */
function deadCard({ dead, observed, window, incomplete }) {
  const [counted, of] = [observed, window].map(milliseconds);
  const since = new Date(Date.now() - of).toISOString();
  return card('Dead', counted ? `${incomplete ? '≥ ' : ''}${count(dead)}` : '–',
    counted ? `counted for ${duration(counted)} of the last ${duration(of)}` : 'not counted yet', `#/jobs?state=dead&finished_after=${since}`);
}

function cards({ leader, workers, jobs: depths }, oldest, statistics) {
  const slots = workers.reduce((sum, worker) => sum + (worker.slots ?? 0), 0);
  // Jobs that were submitted together are assigned together, before slots are free for all of them.
  const busy = workers.reduce((sum, worker) => sum + Math.min(worker.assigned ?? 0, worker.slots ?? 0), 0);
  return h('div', { class: 'cards' },
    card('Leader', leader ? leader.node : 'none', leader && [`epoch ${leader.epoch}, for `, elapsed(leader.since)], '#/settings'),
    card('Workers', count(workers.length), `${count(busy)} of ${count(slots)} slots busy`, '#/workers'),
    card('Queued', count(depths.queued), 'wait for a worker', '#/jobs?state=queued'),
    oldest ? card('Oldest waiting', elapsed(oldest.since), [oldest.id, !oldest.exact && ', of the most urgent jobs'], `#/jobs/${encodeURIComponent(oldest.id)}`)
      : card('Oldest waiting', '–', 'no job waits for a worker', '#/jobs?state=queued'),
    card('Delayed', `${depths.delayed_exact ? '' : '≥ '}${count(depths.delayed)}`, 'wait for their time', '#/jobs?state=delayed'),
    card('Running', count(depths.assigned), 'assigned to live workers', '#/jobs?state=running'),
    deadCard(statistics),
    card('Stored', count(depths.stored), 'open and ended jobs', '#/jobs'));
}

export async function overview({ root, left }) {
  const load = async () => {
    const [cluster, { samples, oldest_queued: oldest }, { candidates }, { alerts }, statistics] = await Promise.all(
      ['/v1/cluster', '/v1/samples', '/v1/leader/candidates', '/v1/alerts', '/v1/kinds/statistics'].map((path) => get(path, {}, left)));
    const found = warnings(cluster);
    update(root,
      h('h1', {}, 'Overview'),
      cards(cluster, oldest, statistics),
      candidates.length > 1 && h('p', { class: 'quiet' }, 'Next to lead: ',
        candidates.filter(({ leads }) => !leads).map(({ node, session }) => node ?? session).slice(0, 10).join(', ')),
      alerts.length > 0 && alertList(alerts),
      found.length > 0 && h('section', { class: 'warnings', 'aria-label': 'Needs attention' },
        h('h2', {}, 'Needs attention'), h('ul', {}, found.map((text) => h('li', {}, text)))),
      h('div', { class: 'columns' },
        chart({ title: 'Jobs', samples, lines: [
          { name: 'queued', of: (sample) => sample.queued },
          { name: 'running', of: (sample) => sample.running },
        ] }),
        chart({ title: 'Per second', decimals: true, samples, lines: [
          { name: 'submitted', of: (sample) => sample.submitted_per_second },
          { name: 'finished', of: (sample) => sample.finished_per_second },
          { name: 'dead', of: (sample) => sample.dead_per_second },
        ] })),
      cluster.jobs.stored === 0 && h('section', { class: 'empty' },
        h('h2', {}, 'No jobs yet'),
        h('p', {}, 'Submit one with ', h('code', {}, `bellwether job submit sum '{"first": 1, "second": 2}'`), '.')));
  };
  await refresh({ left, load });
}
