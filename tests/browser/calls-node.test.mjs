// @ts-check
// Calls between two threads: each side names its stand-ins for values by numbers of its own, and no
// name of one side may be taken for one of the other.

import assert from 'node:assert/strict';
import { getEventListeners } from 'node:events';
import { after, describe, it } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';

import { DIST } from './session.mjs';

/** Iterators that one side names while the other side's signal is in use. */
const ITERATORS = 12;

describe('two sides of a port', async () => {
  const { Link } = await import(`file://${DIST}/package/src/link.js`);
  const { port1, port2 } = new MessageChannel();
  const [near, far] = [new Link(port1, { gives: false }), new Link(port2, { gives: true })];
  for (const port of [port1, port2]) port.start();
  after(() => port1.close());

  far.offer('wait', (/** @type {{ signal: AbortSignal }} */ { signal }) => new Promise((resolve) => signal.addEventListener('abort', () => resolve('aborted'))));
  far.offer('hold', () => 'held');
  far.offer('count', () => (async function* () {
    yield* [1, 2, 3];
  })());

  /** @param {AsyncIterable<number>} values */
  async function all(values) {
    const found = [];
    for await (const value of values) found.push(value);
    return found;
  }

  it('keep iterators apart from signals that end before them', async () => {
    const signals = Array.from({ length: ITERATORS }, () => new AbortController().signal);
    // Each holds a signal with the next name, and the iterators below pass all of these names.
    const held = signals.map((signal) => near.call('hold', [{ signal }]));
    await Promise.all(held.map(({ answer }) => answer));
    const counting = await Promise.all(Array.from({ length: ITERATORS }, () => near.call('count', []).answer));
    held.forEach(({ release }) => release());
    await near.call('hold', []).answer;
    for (const values of counting) assert.deepEqual(await all(values), [1, 2, 3]);
    for (const signal of signals) assert.equal(getEventListeners(signal, 'abort').length, 0);
  });

  it('keep the abort of a signal, whatever the other side names meanwhile', async () => {
    const controllers = Array.from({ length: ITERATORS }, () => new AbortController());
    const waiting = controllers.map(({ signal }) => near.call('wait', [{ signal }]).answer);
    for (const values of await Promise.all(controllers.map(() => near.call('count', []).answer))) assert.deepEqual(await all(values), [1, 2, 3]);
    controllers.forEach((controller) => controller.abort());
    const late = sleep(20_000, 'ignored', { ref: false });
    for (const answer of waiting) assert.equal(await Promise.race([answer, late]), 'aborted');
  });
});
