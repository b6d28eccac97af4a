// @ts-check
// Clips of latents to frames, part by part: whatever their length, they take the memory of one part.

import { bitmapOf } from './canvas.js';
import { openClipLatents } from './clip-latents.js';
import { mismatch, WgvaeError, wgvaeError } from './errors.js';
import { orAborted } from './queue.js';

/** @typedef {import('./index.js').ClipOptions} ClipOptions */

/** What the module calls each kind of frame. */
const OUTPUTS = /** @type {const} */ ({ bitmap: 'rgba8', 'image-data': 'rgba8', raw: 'raw' });

/** What a model that can decode clips does. */
export class Clips {
  #loaded;

  /** @param {import('./loaded.js').Loaded} loaded */
  constructor(loaded) {
    this.#loaded = loaded;
  }

  /** @param {import('./index.js').PlanOptions} options */
  plan({ width, height, memoryBudget, output = 'bitmap' }) {
    this.#loaded.throwIfDestroyed();
    checkOutput(output);
    const scale = this.#loaded.info.pixels_per_latent;
    for (const [side, pixels] of Object.entries({ width, height })) {
      if (pixels > 0 && Number.isInteger(pixels / scale)) continue;
      throw mismatch('input', `${side} of the frames`, `a multiple of ${scale} pixels`, `${pixels}`);
    }
    try {
      return this.#loaded.engine.planner.planClip(width / scale, height / scale, this.#moduleOptions({ memoryBudget, output }));
    } catch (error) {
      throw wgvaeError(error);
    }
  }

  /**
   * @param {import('./index.js').ClipInput} input
   * @param {ClipOptions} [options]
   * @returns {AsyncGenerator<any, void, undefined>}
   */
  async *decode(input, options = {}) {
    const loaded = this.#loaded;
    loaded.throwIfDestroyed();
    const { output = 'bitmap', memoryBudget } = options;
    checkOutput(output);
    const signal = loaded.signalOf(options.signal);
    const opening = openClipLatents(loaded.wasm, input, loaded.accessOf(signal), loaded.info.latent_channels);
    const latents = await orAborted(opening, signal).catch((error) => {
      opening.then((late) => late.free(), () => {});
      throw wgvaeError(error);
    });
    const moduleOptions = () => this.#moduleOptions({ memoryBudget, output });
    /** @type {import('../pkg/wgvae.js').Clip | undefined} */
    let clip;
    try {
      // Nothing of it is on a device yet: after a loss it begins on the new one.
      clip = await loaded.run(options, true, () => loaded.engine.vae.beginClip(latents.width, latents.height, latents.unscaled, moduleOptions()));
      const { engine } = loaded;
      for (let index = 0; index < latents.frames; index += 1) {
        const part = clip;
        const { frames, width, height } = await loaded.run(options, false, async (signal) => {
          if (loaded.engine !== engine) throw new WgvaeError('device-lost', 'what the clip had kept was on a GPU device that is lost: begin it again');
          const frame = await latents.frame(index);
          try {
            const listener = loaded.listener('decode', options.onProgress);
            return await loaded.cancellable(signal, (cancel) => engine.vae.decodePart(part, frame, moduleOptions(), cancel, listener));
          } finally {
            frame.free();
          }
        });
        for (const data of frames) yield await delivered(output, data, width, height);
      }
    } finally {
      // A broken module frees nothing.
      if (!loaded.wasm.broken.aborted) clip?.free();
      latents.free();
    }
  }

  /** @param {{ memoryBudget?: number, output: import('./index.js').Output }} options */
  #moduleOptions({ memoryBudget, output }) {
    return { ...this.#loaded.moduleOptions({ memoryBudget }), output: OUTPUTS[output] };
  }
}

/** @param {string} output */
function checkOutput(output) {
  if (!(output in OUTPUTS)) throw mismatch('input', 'output', Object.keys(OUTPUTS).join(', '), `${output}`);
}

/**
 * @param {import('./index.js').Output} output
 * @param {any} data
 * @param {number} width
 * @param {number} height
 */
async function delivered(output, data, width, height) {
  if (output === 'raw') return { data, shape: [3, height, width] };
  const image = new ImageData(data, width, height);
  return output === 'bitmap' ? bitmapOf(image) : image;
}
