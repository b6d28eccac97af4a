// @ts-check
// Decoding of a clip's latents to frames, part by part. A clip takes the memory of one part.
// HunyuanVideo 1.5 also keeps keys and values of all earlier frames.

import { openClipLatents, partsOf } from './clip-latents.js';
import { ClipRun, freeFor } from './clip-run.js';
import { clipNow } from './copies.js';
import { mismatch, wgvaeError } from './errors.js';
import { checkOptions, LISTENER, oneOf, SIGNAL, SMALL, WHOLE } from './options.js';
import { checkOutput, delivered, FRAMES, videoFrameOf } from './outputs.js';
import { either, orAborted } from './queue.js';
import { stoppable } from './stoppable.js';

/** @typedef {import('./index.js').ClipOptions} ClipOptions */

/** Options of a plan. @type {import('./options.js').Checks} */
const OF_PLANS = { width: SMALL, height: SMALL, output: oneOf(...Object.keys(FRAMES)), memoryBudget: WHOLE, clipLatents: SMALL };

/** Frames per second of video, unless the caller says otherwise. */
const FPS = 24;

/** @type {import('./options.js').Check} */
const RATE = [(value) => Number.isFinite(value) && value > 0, 'frames per second, above 0'];

/** Options of a decode. @type {import('./options.js').Checks} */
const OF_DECODES = { output: undefined, fps: RATE, memoryBudget: WHOLE, clipLatents: SMALL, onProgress: LISTENER, signal: SIGNAL };

/** The module's name for such a decode. */
const JOB = /** @type {const} */ ({ direction: 'decode', frames: 'clip' });

/** Decoding of clips by a loaded model. */
export class Clips {
  #loaded;

  /** @param {import('./loaded.js').Loaded} loaded */
  constructor(loaded) {
    this.#loaded = loaded;
  }

  /** @param {import('./index.js').ClipPlanOptions} options */
  plan(options) {
    this.#loaded.throwIfDestroyed();
    checkOptions(options, OF_PLANS);
    const { width, height, memoryBudget, clipLatents, output = 'bitmap' } = options;
    return this.#loaded.plan({ ...JOB, width, height, ...this.#moduleOptions({ memoryBudget, clipLatents, output }) });
  }

  /**
   * @param {import('./index.js').ClipInput} input
   * @param {ClipOptions} [options]
   * @returns {AsyncGenerator<any, void, undefined>}
   */
  decode(input, options = {}) {
    const kept = clipNow(input);
    const parts = partsOf(kept);
    const own = options && { ...options };
    return stoppable((stop) => this.#frames(kept, parts, own, stop), () => parts?.free());
  }

  /**
   * @param {import('./index.js').ClipInput} input
   * @param {ReturnType<typeof partsOf>} parts of the input
   * @param {ClipOptions} given
   * @param {AbortSignal} stop
   * @returns {AsyncGenerator<any, void, undefined>}
   */
  async *#frames(input, parts, given, stop) {
    const loaded = this.#loaded;
    loaded.throwIfDestroyed();
    checkOptions(given, OF_DECODES);
    const options = { ...given, signal: either(given.signal, stop) };
    const { output = 'bitmap', fps, memoryBudget } = options;
    checkOutput(output, FRAMES);
    if (fps !== undefined && output !== 'video-frame') throw mismatch('input', 'fps', 'the output video-frame beside it', output);
    const signal = loaded.signalOf(options.signal);
    const opening = openClipLatents(loaded, input, parts, loaded.accessOf(signal));
    const latents = await orAborted(opening, signal).catch((error) => {
      opening.then((late) => late.free(), () => {});
      throw wgvaeError(error);
    });
    const { clipLatents = latents.count } = options;
    const moduleOptions = () => this.#moduleOptions({ memoryBudget, clipLatents, output });
    /** @type {ClipRun | undefined} */
    let run;
    let index = 0;
    try {
      run = await ClipRun.begin(loaded, options, latents, (vae) => vae.beginClip({ ...JOB, width: latents.width, height: latents.height, unscaled: latents.unscaled, ...moduleOptions() }));
      // Read before the decode's turn: latents may come from an encode, which waits for its own
      // turn.
      for (;;) {
        // A model that ended has freed the latents.
        signal.throwIfAborted();
        const part = await latents.next() ?? undefined;
        const decoded = part
          ? await run.part('decode', part, (vae, clip, cancel, listener) => vae.decodePart(clip, part, moduleOptions(), cancel, listener))
          // Frames that waited for later latents.
          : await run.part('decode', undefined, (vae, clip, cancel, listener) => vae.finishPart(clip, moduleOptions(), cancel, listener));
        if (!decoded) break;
        for (const data of decoded.frames) {
          yield output === 'video-frame' ? videoFrameOf(data, decoded, index, fps ?? FPS) : await delivered(output, data, decoded.width, decoded.height, 3);
          index += 1;
        }
      }
    } catch (error) {
      throw wgvaeError(error);
    } finally {
      await freeFor(signal, run ?? latents);
    }
  }

  /**
   * @param {{ memoryBudget?: number, clipLatents?: number, output: import('./index.js').FrameOutput
   * }} options
   */
  #moduleOptions({ memoryBudget, clipLatents, output }) {
    return { ...this.#loaded.moduleOptions({ memoryBudget }), clipLatents, output: FRAMES[output] };
  }
}
