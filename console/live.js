// The event stream of the gateway. `EventSource` cannot send a token, so the stream is read with fetch.

import { open } from './api.js';

/** The gateway sends a comment every 15 s. */
const SILENT = 35_000;
const [LEAST, MOST] = [1_000, 15_000];

const listeners = new Set();
let state = { live: false, since: Date.now() };
let running = null;

/** Calls `listener(event)` for each event of a job, and with null when events may have been missed. Returns a function that ends it. */
export function listen(listener) {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

export function liveness() {
  return state;
}

function set(live) {
  if (state.live === live) return;
  state = { live, since: Date.now() };
  window.dispatchEvent(new Event('liveness'));
}

const tell = (event) => listeners.forEach((listener) => listener(event));

export function stop() {
  running?.abort();
  running = null;
}

/** Follows the events until `stop`, and connects again when the stream ends. */
export async function start() {
  stop();
  const mine = new AbortController();
  running = mine;
  for (let wait = LEAST; !mine.signal.aborted; wait = Math.min(2 * wait, MOST)) {
    const began = Date.now();
    try {
      await follow(mine.signal);
    } catch (error) {
      if (error.status === 401 || error.status === 403) mine.abort();
    }
    set(false);
    if (Date.now() - began > MOST) wait = LEAST;
    await new Promise((resolve) => setTimeout(resolve, wait * (0.5 + Math.random() / 2)));
  }
}

async function follow(stopped) {
  const silence = new AbortController();
  const answer = await open('GET', '/v1/events', { signal: AbortSignal.any([stopped, silence.signal]) });
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  set(true);
  tell(null);
  let text = '';
  for (;;) {
    const timer = setTimeout(() => silence.abort(), SILENT);
    const { done, value } = await reader.read().finally(() => clearTimeout(timer));
    if (done) return;
    text += value;
    const blocks = text.split('\n\n');
    text = blocks.pop();
    blocks.forEach(dispatch);
  }
}

function dispatch(block) {
  const lines = block.split('\n');
  const field = (name) => lines.find((line) => line.startsWith(`${name}: `))?.slice(name.length + 2);
  const event = field('event');
  if (event === 'job') tell(JSON.parse(field('data')));
  else if (event === 'gap' || event === 'missed') tell(null);
}
