// @ts-check
// How what is going on reaches whoever shows it.

/** Progress is told this often, milliseconds. */
const PROGRESS_EVERY = 50;

/** @type {(news: import('./news.js').News) => void} */
let listener = () => {};

/** Whether what is going on is being stopped: how far it is interests nobody any more. */
let isHushed = false;

/** @param {boolean} isStopping whether progress comes of something that is being stopped */
export function hush(isStopping) {
  isHushed = isStopping;
}

/** @param {(news: import('./news.js').News) => void} onNews hears of everything from now on */
export function listen(onNews) {
  listener = onNews;
}

/** @param {import('./news.js').News} news whose bitmaps become the listener's */
export function tell(news) {
  listener(news);
}

/**
 * Tells progress, not more often than people can read, and always the last of each step's.
 * @returns {(progress: import('./news.js').Progress) => void}
 */
export function progressTeller() {
  let last = 0;
  return (progress) => {
    if (isHushed) return;
    const now = performance.now();
    if (now - last < PROGRESS_EVERY && progress.done < progress.total) return;
    last = now;
    tell({ type: 'progress', progress });
  };
}
