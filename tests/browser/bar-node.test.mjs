// @ts-check
// The page's bar, without a browser: it moves during every part of a clip, and never back.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';

import { Bar, stagesOf } from '../../web/page/bar.js';

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
