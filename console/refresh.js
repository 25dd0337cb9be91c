// Keeps a page up to date: by events, and by a timer for what has no events.

import { listen } from './live.js';

/** Events within this time cause one refresh. */
const TOGETHER = 400;

/**
 * Calls `load()` now, after events that `concerns` accepts, and every `every` milliseconds while the page is visible; never twice at
 * a time. Errors of later calls go to `failed`. Ends with the signal `left`.
 */
export async function refresh({ left, every = 5_000, concerns = () => true, load, failed = () => {} }) {
  let running = false;
  let again = false;
  let timer = null;
  async function run() {
    if (running) {
      again = true;
      return;
    }
    running = true;
    try {
      await load();
    } catch (error) {
      if (!left.aborted && error.name !== 'AbortError') failed(error);
    }
    running = false;
    if (left.aborted) return;
    clearTimeout(timer);
    timer = setTimeout(run, again ? TOGETHER : every);
    again = false;
  }
  const soon = (event) => {
    if (document.hidden || (event && !concerns(event))) return;
    if (running) again = true;
    else {
      clearTimeout(timer);
      timer = setTimeout(run, TOGETHER);
    }
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
