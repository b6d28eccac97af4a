// @ts-check
// What the worker tells the page.

/** Progress is told this often, milliseconds. */
const PROGRESS_EVERY = 50;

/**
 * @param {import('./protocol.js').FromWorker} message
 * @param {Transferable[]} [transfer]
 */
export function tell(message, transfer = []) {
  self.postMessage(message, { transfer });
}

/**
 * Tells progress, not more often than people can read, and always the last of each step's.
 * @returns {(progress: import('./protocol.js').Progress) => void}
 */
export function progressTeller() {
  let last = 0;
  return (progress) => {
    const now = performance.now();
    if (now - last < PROGRESS_EVERY && progress.done < progress.total) return;
    last = now;
    tell({ type: 'progress', progress });
  };
}
