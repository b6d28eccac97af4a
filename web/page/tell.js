// @ts-check
// Messages from the session to the page.

/** Shortest time between two messages of progress, milliseconds. */
const PROGRESS_EVERY = 50;

/** @type {(news: import('./news.js').News) => void} */
let listener = () => {};

/**
 * @param {(news: import('./news.js').News) => void} onNews listener for all messages from now on
 */
export function listen(onNews) {
  listener = onNews;
}

/** @param {import('./news.js').News} news message whose bitmaps then belong to the listener */
export function tell(news) {
  listener(news);
}

/**
 * Returns a function that tells progress, not more often than people can read, and always the last
 * of each step. After an abort it tells nothing more: the worker may take a while to stop.
 * @param {AbortSignal} signal of the work
 * @returns {(progress: import('./news.js').Progress) => void}
 */
export function progressTeller(signal) {
  let last = 0;
  return (progress) => {
    if (signal.aborted) return;
    const now = performance.now();
    if (now - last < PROGRESS_EVERY && progress.done < progress.total) return;
    last = now;
    tell({ type: 'progress', progress });
  };
}
