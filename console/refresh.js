// Keeps a page up to date: by events, and by a timer for what has no events.

import { listen } from './live.js';

/** Events within this time cause one refresh. */
const TOGETHER = 400;
/** Time between two refreshes on a cluster that has events all the time. */
const APART = 1_000;

/**
 * Calls `load()` now, after events that `concerns` accepts, and every `every` milliseconds while the page is visible; never twice at
 * a time. Errors of later calls go to `failed`. Ends with the signal `left`.
 */
export async function refresh({ left, every = 5_000, concerns = () => true, load, failed = () => {} }) {
  let running = false;
  let again = false;
  let timer = null;
  let ended = 0;
  // Whether the timer is one after an event. A further event must not put it off: a busy cluster always has one.
  let hurries = false;
  const hurry = () => {
    if (hurries) return;
    hurries = true;
    clearTimeout(timer);
    timer = setTimeout(run, Math.max(TOGETHER, ended + APART - Date.now()));
  };
  async function run() {
    running = true;
    again = false;
    hurries = false;
    try {
      await load();
    } catch (error) {
      if (!left.aborted && error.name !== 'AbortError') failed(error);
    }
    running = false;
    ended = Date.now();
    if (left.aborted) return;
    if (again) hurry();
    else timer = setTimeout(run, every);
  }
  const soon = (event) => {
    if (document.hidden || (event && !concerns(event))) return;
    if (running) again = true;
    else hurry();
  };
  running = true;
  await load();
  running = false;
  if (left.aborted) return;
  const end = listen(soon);
  const seen = () => !document.hidden && soon(null);
  document.addEventListener('visibilitychange', seen);
  timer = setTimeout(run, every);
  left.addEventListener('abort', () => {
    end();
    clearTimeout(timer);
    document.removeEventListener('visibilitychange', seen);
  });
}
