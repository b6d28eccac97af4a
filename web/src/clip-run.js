// @ts-check
// A clip in progress on a device, in either direction. Its parts run one after the other, until the
// caller leaves or aborts, or the device is lost.

import { reportAside, WgvaeError } from './errors.js';
import { isLoss } from './loss.js';

/** @typedef {import('../pkg/wgvae.js').Clip} Clip */
/** @typedef {import('../pkg/wgvae.js').Vae} Vae */
/** @typedef {import('../pkg/wgvae.js').Cancel} Cancel */
/** Latents or pictures of a clip. @typedef {{ free(): Promise<void> | void }} Input */
/**
 * @typedef {{ onProgress?: (progress: import('./index.js').Progress) => void, signal?: AbortSignal
 * }} RunOptions
 */

export class ClipRun {
  #loaded;
  #options;
  /** The clip, and the engine that it began on. It cannot move to another device. */
  #begun;
  /** Number of parts that are done. */
  #done = 0;
  /** Report of the last of them, until it was told. @type {import('./index.js').Report | undefined} */
  #finished;
  /** Settles when nothing uses the clip. @type {Promise<unknown>} */
  #idle = Promise.resolve();
  #input;
  /** Settles when the input is free. @type {Promise<unknown> | undefined} */
  #inputFreed;

  /**
   * @param {import('./loaded.js').Loaded} loaded
   * @param {RunOptions} options
   * @param {{ clip: Clip, engine: import('./engine.js').Engine }} begun
   * @param {Input} input
   */
  constructor(loaded, options, begun, input) {
    this.#loaded = loaded;
    this.#options = options;
    this.#begun = begun;
    this.#input = input;
    loaded.clips.add(this);
  }

  /**
   * @param {import('./loaded.js').Loaded} loaded
   * @param {RunOptions} options
   * @param {Input} input ends with the clip
   * @param {(vae: Vae) => Promise<Clip>} begin
   */
  static async begin(loaded, options, input, begin) {
    /** @type {ClipRun | undefined} */
    let run;
    try {
      // No state is on a device yet: after a loss it begins on the new one.
      return await loaded.run(options, true, async (signal) => {
        const { engine } = loaded;
        // With all states on the host, a clip begins on a lost device too, and then fails.
        if (engine.isLost) throw new WgvaeError('device-lost', 'the GPU device was lost before the clip began');
        const clip = await begin(engine.vae);
        // The caller has aborted and does not wait for it.
        if (signal.aborted) clip.free();
        signal.throwIfAborted();
        run = new ClipRun(loaded, options, { clip, engine }, input);
        return run;
      });
    } catch (error) {
      run?.freeStates();
      throw error;
    }
  }

  /** Frames of the input that the next part takes. */
  get wants() {
    this.#loaded.throwIfDestroyed();
    return this.#begun.clip.wants();
  }

  /**
   * Runs the next part, by `call`.
   * @template {{ report: import('./index.js').Report } | undefined} R
   * @param {'decode' | 'encode'} phase
   * @param {{ free(): void } | undefined} input of the part, if any, freed after its last use
   * @param {(vae: Vae, clip: Clip, cancel: Cancel, listener:
   * ReturnType<import('./loaded.js').Loaded['listener']>) => Promise<R>} call
   */
  async part(phase, input, call) {
    const loaded = this.#loaded;
    const { clip, engine } = this.#begun;
    const onProgress = this.#inPart();
    try {
      const result = await loaded.run({ ...this.#options, onProgress }, false, async (signal) => {
        if (loaded.engine !== engine) throw new WgvaeError('device-lost', 'what the clip had kept was on a GPU device that is lost: begin it again');
        const listener = loaded.listener(phase, onProgress);
        const part = loaded.cancellable(signal, (cancel) => call(engine.vae, clip, cancel, listener));
        this.#idle = part.catch(() => {});
        return part;
      });
      this.#done += 1;
      this.#finished = result?.report;
      return result;
    } catch (error) {
      // The next clip begins on a new device. The one in use now may be new already.
      if (await isLoss(error, engine.device)) engine.noteLoss();
      throw error;
    } finally {
      // An abort does not wait for the part that it stops.
      this.#idle.then(() => input?.free());
    }
  }

  /** Returns a listener that adds the part, and once the report of the part before. */
  #inPart() {
    const { onProgress = this.#loaded.options.onProgress } = this.#options;
    return onProgress && ((/** @type {import('./index.js').Progress} */ progress) => {
      const told = { ...progress, part: this.#done, ...(this.#finished && { finished: this.#finished }) };
      this.#finished = undefined;
      onProgress(told);
    });
  }

  /** Frees the state of the clip, if that is not done yet. */
  async freeStates() {
    await this.#idle;
    const isOpen = this.#loaded.clips.delete(this);
    // A broken module frees nothing.
    if (isOpen && !this.#loaded.wasm.broken.aborted) this.#begun.clip.free();
  }

  /** Frees the state of the clip and its input. */
  async free() {
    // At once: a camera must not stay on while a part ends that was aborted.
    this.#inputFreed ??= Promise.resolve(this.#input.free());
    await Promise.all([this.freeStates(), this.#inputFreed]);
  }
}

/**
 * Frees a clip or its input. After an abort, does not wait for it.
 * @param {AbortSignal} signal
 * @param {ClipRun | Input} clip
 */
export async function freeFor(signal, clip) {
  const freed = Promise.resolve(clip.free());
  if (signal.aborted) freed.catch(reportAside);
  else await freed;
}
