// @ts-check
// wgvae/react, with a stand-in for React and for models: none is left open, and none is opened
// again without need.

import assert from 'node:assert/strict';
import { register } from 'node:module';
import { afterEach, beforeEach, describe, it } from 'node:test';

import { render, unmount } from './react-stand-in.mjs';

const STAND_IN = new URL('./react-stand-in.mjs', import.meta.url).href;
register(`data:text/javascript,${encodeURIComponent(`export const resolve = (name, context, next) => (name === 'react' ? { url: '${STAND_IN}', shortCircuit: true } : next(name, context));`)}`);
const { useDecoder } = await import('../../web/src/react.js');

/**
 * @typedef {{ options: any, isDestroyed: boolean, open(): void, fail(error: Error): void,
 * destroy(): Promise<void> }} Model
 */

/** @type {Model[]} */
let models = [];
/** True if models open in spite of an abort. */
let isStubborn = false;

/** Opens a model when the test says so. @param {any} options @returns {Promise<any>} */
function create(options) {
  return new Promise((resolve, reject) => {
    /** @type {Model} */
    const model = {
      options,
      isDestroyed: false,
      open: () => resolve(model),
      fail: reject,
      destroy: async () => { model.isDestroyed = true; },
    };
    options.signal.addEventListener('abort', () => isStubborn || reject(options.signal.reason));
    models.push(model);
  });
}

/** @param {any} options */
const show = (options) => render(() => useDecoder(options, create));
const settled = () => new Promise((resolve) => setImmediate(resolve));

describe('useDecoder', () => {
  beforeEach(() => { [models, isStubborn] = [[], false]; });
  afterEach(unmount);

  it('opens one model in StrictMode, and destroys it with the component', async () => {
    assert.deepEqual(show({ model: 'a' }), { decoder: undefined, progress: undefined, error: undefined });
    assert.deepEqual(models.map(({ options }) => options.signal.aborted), [true, false]);
    const [, model] = models;
    model.options.onProgress({ phase: 'load' });
    assert.deepEqual(show({ model: 'a' }).progress, { phase: 'load' });
    model.open();
    await settled();
    assert.equal(show({ model: 'a' }).decoder, model);
    assert.equal(models.length, 2);
    unmount();
    await settled();
    assert.equal(model.isDestroyed, true);
  });

  it('destroys a model that opens in spite of the abort', async () => {
    isStubborn = true;
    show({ model: 'a' });
    for (const model of models) model.open();
    await settled();
    assert.deepEqual(models.map(({ isDestroyed }) => isDestroyed), [true, false]);
    assert.equal(show({ model: 'a' }).decoder, models[1]);
  });

  it('opens another when an option changes, and none for new listeners or without options', async () => {
    show(undefined);
    assert.equal(models.length, 0);
    unmount();
    show({ model: 'a', onProgress: () => {} });
    models[1].open();
    await settled();
    show({ model: 'a', onProgress: () => {} });
    assert.equal(models.length, 2);
    show({ model: 'a', precision: 'f32' });
    await settled();
    assert.deepEqual([models.length, models[1].isDestroyed, models[2].options.precision], [3, true, 'f32']);
    assert.equal(show({ model: 'a', precision: 'f32' }).decoder, undefined);
  });

  it('tells an error, and no abort of its own', async () => {
    show({ model: 'a' });
    await settled();
    assert.equal(show({ model: 'a' }).error, undefined);
    const error = new Error('no such file');
    models[1].fail(error);
    await settled();
    assert.equal(show({ model: 'a' }).error, error);
  });
});
