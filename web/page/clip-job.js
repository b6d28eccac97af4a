// @ts-check
// What the worker does with a clip: latents to frames, or pictures to latents and back. Frames go to the page as they come, as PNG files: what is kept of a clip is no GPU memory.

import { fromPng, toPng } from './png.js';
import { Psnr } from './psnr.js';
import { progressTeller, tell } from './tell.js';

/** @typedef {import('../src/index.js').Decoder} Decoder */
/** @typedef {import('../src/index.js').Vae} Vae */
/** @typedef {import('./protocol.js').ClipOutcome} ClipOutcome */
/** @typedef {{ memoryBudget: number | undefined, signal: AbortSignal }} Options */

/** A part of all but the first is made of so many frames. */
const STEP = 4;

/**
 * Decodes a clip.
 * @param {Decoder} decoder
 * @param {{ latents: import('../src/index.js').ClipInput, name: string, size: import('./protocol.js').Size, frames: number }} clip
 * @param {Options} options
 */
export async function decodeClip(decoder, { latents, name, size, frames }, options) {
  tell({ type: 'clip', name, size, count: frames, isRoundTrip: false });
  const tally = new Tally('decode', decoder);
  for await (const image of decoder.clip(latents, { ...options, output: 'image-data', onProgress: tally.progress(frames) })) {
    tally.add(1);
    tell({ type: 'frame', blob: await toPng(image) });
  }
  return [tally.outcome()];
}

/**
 * Encodes pictures and decodes what comes of them.
 * @param {Vae} vae
 * @param {{ footage: import('./footage.js').Footage, name: string, size: import('./protocol.js').Size }} clip
 * @param {Options & { onDecode: () => void }} options `onDecode` hears when all is encoded
 */
export async function encodeAndDecodeClip(vae, { footage, name, size }, { onDecode, ...options }) {
  const factor = vae.info.pixels_per_latent;
  footage.remarks(factor).forEach((notice) => tell({ type: 'notice', notice }));
  /** @type {Blob[]} */
  const originals = [];
  const pictures = async function* () {
    for await (const picture of footage.pictures(factor)) {
      originals.push(await toPng(picture));
      yield picture;
    }
  };
  const encoding = new Tally('encode', vae);
  const parts = [];
  for await (const part of vae.encodeClip(pictures(), { ...options, pad: 'mirror', onProgress: encoding.progress(footage.count) })) {
    encoding.add(part.frames);
    parts.push(part);
  }
  onDecode();
  tell({ type: 'clip', name, size, count: originals.length, rate: footage.rate, isRoundTrip: true });
  const decoding = new Tally('decode', vae);
  const likeness = new Psnr();
  for await (const image of vae.clip(parts, { ...options, output: 'image-data', onProgress: decoding.progress(originals.length) })) {
    // Behind the last one is what was added, so that all of it could be encoded.
    const original = originals[decoding.frames];
    decoding.add(original ? 1 : 0);
    if (!original) continue;
    likeness.add((await fromPng(original)).data, image.data);
    tell({ type: 'frame', blob: await toPng(image), original, psnr: likeness.value });
  }
  return [encoding.outcome(), decoding.outcome()];
}

/** What the parts of a clip took. */
class Tally {
  #operation;
  #model;
  /** Of its parts, as far as they are done. @type {Set<import('./protocol.js').Report>} */
  #reports = new Set();
  #tell = progressTeller();
  frames = 0;

  /**
   * @param {import('./protocol.js').Operation} operation
   * @param {import('../src/index.js').LoadedModel} model
   */
  constructor(operation, model) {
    this.#operation = operation;
    this.#model = model;
  }

  /**
   * Tells how far a clip is.
   * @param {number} frames that it has, as far as that is known
   * @returns {(progress: import('../src/index.js').Progress) => void}
   */
  progress(frames) {
    const total = Math.ceil((frames - 1) / STEP) + 1;
    return (progress) => this.#tell({ ...progress, parts: { done: this.#reports.size, total: Math.max(total, this.#reports.size + 1) } });
  }

  /** @param {number} frames that came of the last part, or that it was made of */
  add(frames) {
    if (this.#model.report) this.#reports.add(this.#model.report);
    this.frames += frames;
  }

  /** @returns {ClipOutcome} */
  outcome() {
    const reports = [...this.#reports];
    const sum = (/** @type {(report: import('./protocol.js').Report) => number} */ of) => reports.reduce((total, report) => total + of(report), 0);
    const most = (/** @type {(report: import('./protocol.js').Report) => number} */ of) => Math.max(0, ...reports.map(of));
    return {
      operation: this.#operation,
      frames: this.frames,
      predicted: most((report) => report.predicted_peak_bytes),
      measured: most((report) => report.measured_peak_bytes),
      seconds: sum((report) => report.seconds),
      submissions: sum((report) => report.submissions.length),
      longest: most((report) => Math.max(0, ...report.submissions.map(({ seconds }) => seconds))),
      compiled: sum((report) => report.compiled),
      compileSeconds: sum((report) => report.compile_seconds),
    };
  }
}
