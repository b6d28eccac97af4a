// @ts-check
// Encoding of a clip's pictures to latents, part by part. Any number of pictures takes the memory
// of one part.

import { encodedLatents } from './clip-lengths.js';
import { ClipPictures } from './clip-pictures.js';
import { ClipRun, freeFor } from './clip-run.js';
import { picturesNow } from './copies.js';
import { checkResult, OF_PARTS, OF_PLANS } from './encoding.js';
import { mismatch, wgvaeError } from './errors.js';
import { checkRequest } from './fit.js';
import { Values } from './iterate.js';
import { checkOptions, oneOf, SMALL } from './options.js';
import { either } from './queue.js';
import { stoppable } from './stoppable.js';

/** Options of an encode, with the ways to fill up the end of the clip. */
const OF_CLIPS = { ...OF_PARTS, clipLatents: SMALL, pad: oneOf('repeat', 'mirror') };

/** The module's name for such an encode. */
const JOB = /** @type {const} */ ({ direction: 'encode', frames: 'clip' });

/** Encoding of clips by a loaded model. */
export class ClipEncoding {
  #loaded;

  /** @param {import('./loaded.js').Loaded} loaded */
  constructor(loaded) {
    this.#loaded = loaded;
  }

  /** @param {import('./index.js').EncodeClipPlanOptions} options */
  plan(options) {
    this.#loaded.throwIfDestroyed();
    checkOptions(options, { ...OF_PLANS, clipLatents: SMALL });
    const { width, height, memoryBudget, clipLatents } = options;
    return this.#loaded.plan({ ...JOB, width, height, ...this.#loaded.moduleOptions({ memoryBudget }), clipLatents });
  }

  /**
   * @param {import('./index.js').ClipPictures} frames
   * @param {import('./index.js').EncodeClipOptions} [options]
   * @returns {AsyncGenerator<import('./index.js').EncodedPart, void, undefined>}
   */
  encode(frames, options = {}) {
    const kept = picturesNow(frames);
    const values = new Values(kept.frames, 'frames of the clip');
    const own = options && { ...options };
    return stoppable((stop) => this.#parts(values, own, stop), () => (kept.free(), values.free()));
  }

  /**
   * @param {Values} values
   * @param {import('./index.js').EncodeClipOptions} given
   * @param {AbortSignal} stop
   * @returns {AsyncGenerator<import('./index.js').EncodedPart, void, undefined>}
   */
  async *#parts(values, given, stop) {
    const loaded = this.#loaded;
    loaded.throwIfDestroyed();
    checkOptions(given, OF_CLIPS);
    checkResult(given, loaded.info);
    checkRequest(given);
    const options = { ...given, signal: either(given.signal, stop) };
    const { pad, output, seed, unscaled, memoryBudget } = options;
    const signal = loaded.signalOf(options.signal);
    const access = loaded.accessOf(signal);
    access.notify = once(access.notify);
    const { pixels_per_latent: factor, fills_parts: fills } = loaded.info;
    if (fills && pad === 'mirror') throw mismatch('input', 'pad', "'repeat' or none, because this model repeats the last frame", pad);
    const pictures = new ClipPictures(loaded.wasm, values, access, { factor, times: loaded.info, pad, request: options });
    // An array tells the length of its clip.
    const count = values.count === undefined ? undefined : encodedLatents(loaded.info, values.count);
    const { clipLatents = count } = options;
    // The noise of a sample continues from part to part.
    const moduleOptions = (index = 0) => ({ ...loaded.moduleOptions({ memoryBudget, index }), output, seed, unscaled, clipLatents });
    /** @type {ClipRun | undefined} */
    let run;
    try {
      const [width, height] = await pictures.size();
      run = await ClipRun.begin(loaded, options, pictures, (vae) => vae.beginClip({ ...JOB, width, height, ...moduleOptions() }));
      for (let index = 0; ; index += 1) {
        // Read before the encode's turn: pictures may come from a decode, which waits for its own
        // turn.
        const part = await pictures.next(run.wants);
        if (!part) break;
        const { images, frames, added } = part;
        const encoded = await run.part('encode', images, (vae, clip, cancel, listener) => vae.encodePart(clip, images, moduleOptions(index), cancel, listener));
        yield { data: encoded.data, shape: encoded.shape, unscaled: encoded.unscaled, width, height, frames, added };
      }
    } catch (error) {
      throw wgvaeError(error);
    } finally {
      await freeFor(signal, run ?? pictures);
    }
  }
}

/**
 * Returns a listener that passes each message on once, as frames of one size have the same notices.
 * @param {(notice: import('./index.js').Notice) => void} notify
 * @returns {(notice: import('./index.js').Notice) => void}
 */
function once(notify) {
  const told = new Set();
  return (notice) => {
    if (!told.has(notice.message)) notify(notice);
    told.add(notice.message);
  };
}
