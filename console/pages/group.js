// One group, with its members and their sub-jobs as a tree.

import { get, may, post } from '../api.js';
import { ask, h, notify, update } from '../dom.js';
import { badge, count, instant } from '../format.js';
import { refresh } from '../refresh.js';
import { jobLink } from './jobs.js';

const path = (id, rest = '') => `/v1/groups/${encodeURIComponent(id)}${rest}`;
/** Members of a group that are read at a time. */
const PAGE = 100;
/** Groups of the tree that are open, and thus read again, at the same time. */
const MOST_OPEN = 20;

/** The error of a member, or what it reports while it runs. */
const detail = ({ state, error, message }) => error ?? (state === 'running' ? message : null);

const groupLink = (id) => h('a', { href: `#/groups/${encodeURIComponent(id)}` }, id);

/** The members of the open groups by group: `{pages, members, next, error}`. */
class Tree {
  constructor(left) {
    this.left = left;
    this.open = new Map();
  }

  /** Reads the pages of a group that are shown. */
  async read(id) {
    const branch = this.open.get(id) ?? { pages: 1, members: [], next: null };
    this.open.set(id, branch);
    const members = [];
    let next = 0;
    try {
      for (let page = 0; page < branch.pages && next !== null; page += 1) {
        const found = await get(path(id, '/members'), { first: next, limit: PAGE }, this.left);
        members.push(...found.members);
        next = found.next;
      }
      Object.assign(branch, { members, next, error: null });
    } catch (error) {
      if (error.name === 'AbortError') throw error;
      branch.error = error.message;
    }
  }

  async readAll() {
    for (const id of this.open.keys()) await this.read(id);
  }

  async toggle(id) {
    if (this.open.delete(id)) return;
    if (this.open.size >= MOST_OPEN) notify(`Close another group first: at most ${MOST_OPEN} are open.`, { error: true });
    else await this.read(id);
  }

  async more(id) {
    this.open.get(id).pages += 1;
    await this.read(id);
  }
}

function list(tree, id, draw, above = []) {
  const branch = tree.open.get(id);
  if (!branch) return null;
  const then = (run) => async () => {
    await run();
    draw();
  };
  const nested = (inner) => h('li', { 'data-key': inner }, h('div', { class: 'row' },
    h('button', {
      type: 'button', 'aria-expanded': String(tree.open.has(inner)), 'aria-label': `Members of ${inner}`,
      disabled: above.includes(inner), onclick: then(() => tree.toggle(inner)),
    }, tree.open.has(inner) ? '−' : '+'), 'sub-jobs ', groupLink(inner)), list(tree, inner, draw, [...above, id]));
  const member = ({ number, id: name, job }) => h('li', { 'data-key': name }, h('div', { class: 'row member' },
    h('span', { class: 'quiet' }, `${number}`), jobLink(name),
    job ? badge(job.state) : h('span', { class: 'quiet' }, 'its record was removed'),
    job && detail(job) && h('span', { class: 'quiet detail' }, detail(job))),
  job && job.sub_jobs.length > 0 && h('ul', { class: 'tree' }, job.sub_jobs.map(nested)));
  return h('ul', { class: 'tree', 'aria-label': `Members of ${id}` },
    branch.error && h('li', { class: 'error' }, branch.error),
    branch.members.length === 0 && !branch.error && h('li', { class: 'quiet' }, 'No member has been submitted.'),
    branch.members.map(member),
    branch.next !== null && h('li', { 'data-key': 'more' }, h('button', { type: 'button', onclick: then(() => tree.more(id)) }, 'Show more members')));
}

export async function group({ root, parameter: id, left }) {
  const tree = new Tree(left);
  let found;
  const draw = () => {
    const abandon = async () => {
      if (!await ask({ title: `Abandon ${id}?`, action: 'Abandon', danger: true, body: h('p', {}, 'It accepts no more members, and ends without a join when its members have ended.') })) return;
      try {
        await post(path(id, '/abandon'));
        await load();
      } catch (error) {
        notify(error.message, { error: true });
      }
    };
    const ended = found.succeeded + found.dead + found.cancelled;
    const facts = [
      ['Status', found.status], ['Kind', found.kind], ['Members', found.total === null ? 'not sealed yet' : count(found.total)],
      ['Succeeded', count(found.succeeded)], ['Dead', count(found.dead)], ['Cancelled', count(found.cancelled)], ['Open', count(found.open)],
      ['Join', found.join && jobLink(found.join)], ['Finished job', found.finished && jobLink(found.finished)], ['Parent', found.parent && jobLink(found.parent)],
      ['First group', found.first && groupLink(found.first)], ['Further groups', found.further.length > 0 && found.further.map((name) => [groupLink(name), ' '])],
      ['Created', instant(found.created_at)], ['Done', found.done_at && instant(found.done_at)],
    ];
    update(root,
      h('div', { class: 'row' }, h('h1', { class: 'grow' }, id), badge(found.stage),
        h('button', { type: 'button', class: 'danger', disabled: !may('operate') || found.done_at !== null, title: may('operate') ? null : 'needs the role operate', onclick: abandon }, 'Abandon')),
      found.total > 0 && h('progress', { class: 'members', max: found.total, value: ended, 'aria-label': 'Ended members' }),
      h('section', {}, h('dl', {}, facts.filter(([, value]) => value).map(([name, value]) => [h('dt', {}, name), h('dd', {}, value)]))),
      h('section', {}, h('h2', {}, 'Members'), list(tree, id, draw)));
  };
  const load = async () => {
    [found] = await Promise.all([get(path(id), {}, left), tree.open.size ? tree.readAll() : tree.read(id)]);
    draw();
  };
  await refresh({ left, load });
}
