// @ts-check
// The page's bar, without a browser: it moves during every part of a clip, and never back.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';

import { Bar, stagesOf } from '../../web/page/bar.js';
import { formatSeconds } from '../../web/page/format.js';

/** A stand-in for the page's progress element. */
class Progress {
  value = 0;
  classList = { toggle() {} };
  removeAttribute() {}
}

describe('the bar', () => {
  it('moves while each part of a clip compiles, is encoded and is decoded', () => {
    const progress = new Progress();
    Object.assign(globalThis, { HTMLProgressElement: Progress, document: { getElementById: () => progress } });
    const bar = new Bar();
    bar.begin(['load', 'later']);
    bar.move('load', 1);
    const values = [progress.value];
    for (const operations of /** @type {('encode' | 'decode')[][]} */ ([['encode', 'decode'], ['decode']])) {
      bar.expect(stagesOf(operations));
      for (const part of [0, 1, 2]) {
        bar.move('compile', (part + 1) / 3);
        bar.move(operations[0], (part + 0.5) / 3);
        values.push(progress.value);
        bar.move(operations[0], (part + 1) / 3);
        values.push(progress.value);
      }
    }
    const steps = values.slice(1).map((value, at) => value - values[at]);
    assert.ok(steps.every((step) => step > 0), values.join());
    assert.ok(progress.value > 0.999, values.join());
  });
});

describe('seconds', () => {
  it('are rounded before they are minutes', () => {
    assert.deepEqual([0.012, 3.21, 99.9, 119.7, 125.2].map(formatSeconds), ['12 ms', '3.2 s', '99.9 s', '2 min 0 s', '2 min 5 s']);
  });
});
