// @ts-check
// Decoding of a clip's latents to frames, or encoding of pictures and decoding of the result.
// Frames are shown as they come, and kept as PNG files, so that a clip takes no GPU memory.

import { decodedFrames, encodedLatents, latentsOfFrames } from '../src/clip-lengths.js';
import { transfer } from '../src/worker.js';
import { ask } from './ask.js';
import { middle } from './crop.js';
import { checkComparable, Psnr } from './psnr.js';
import { tell } from './tell.js';

/** @typedef {import('./news.js').Decoder} Decoder */
/** @typedef {import('./news.js').Vae} Vae */
/** @typedef {import('./news.js').ClipOutcome} ClipOutcome */
/**
 * @typedef {{ memoryBudget: number | undefined, signal: AbortSignal, onProgress: Listener }}
 * Options
 * @typedef {(progress: import('./news.js').Progress) => void} Listener
 */

/**
 * Decodes a clip.
 * @param {Decoder} decoder
 * @param {{ latents: import('../src/index.js').ClipInput, name: string, size:
 * import('./news.js').Size, frames: number, after: number }} clip `after`: parts after that of the
 * last latent
 * @param {Options} options
 */
export async function decodeClip(decoder, { latents, name, size, frames, after }, options) {
  tell({ type: 'clip', name, size, count: frames, isRoundTrip: false });
  const tally = new Tally('decode', decoder, options.onProgress);
  for await (const blob of decoder.clip(latents, { ...options, output: 'blob', onProgress: tally.progress(frames, after) })) {
    tally.add(1);
    tell({ type: 'frame', blob });
  }
  return [tally.outcome()];
}

/**
 * Encodes pictures and decodes the resulting latents.
 * @param {Vae} vae
 * @param {{ footage: import('./news.js').Footage, name: string, size: import('./news.js').Size,
 * after: number }} clip `after`: parts of the decode after that of the last latent
 * @param {Options & { onDecode: () => void }} options `onDecode` is called when all pictures are
 * encoded
 */
export async function encodeAndDecodeClip(vae, { footage, name, size, after }, { onDecode, ...options }) {
  checkComparable(vae.info);
  const factor = vae.info.pixels_per_latent;
  remarks(footage, factor).forEach((notice) => tell({ type: 'notice', notice }));
  /** @type {Blob[]} */
  const originals = [];
  const pictures = async function* () {
    for await (const { picture, png } of await ask('framesOf', footage.files, { size: footage.size, factor, most: footage.count })) {
      originals.push(png);
      yield transfer(picture, [picture.data.buffer]);
    }
  };
  const encoding = new Tally('encode', vae, options.onProgress);
  const parts = [];
  const pad = vae.info.fills_parts ? undefined : 'mirror';
  const clipLatents = encodedLatents(vae.info, footage.count);
  for await (const part of vae.encodeClip(pictures(), { ...options, pad, clipLatents, onProgress: encoding.progress(footage.count) })) {
    encoding.add(part.frames);
    parts.push(part);
  }
  tell({ type: 'latents', name, latents: joined(parts) });
  onDecode();
  // A model that fills up the last part decodes fewer frames than it has encoded.
  const decoded = decodedFrames(vae.info, parts.length) ?? originals.length;
  const count = Math.min(originals.length, decoded);
  if (count < originals.length) {
    tell({ type: 'notice', notice: { code: 'frames-left-out', message: `the latents of ${originals.length} frames decode to ${count}` } });
  }
  tell({ type: 'clip', name, size, count, rate: footage.rate, isRoundTrip: true });
  const decoding = new Tally('decode', vae, options.onProgress);
  const likeness = new Psnr();
  for await (const image of vae.clip(parts, { ...options, clipLatents: parts.length, output: 'image-data', onProgress: decoding.progress(count, after) })) {
    // Frames after the last original are padding of the encode.
    const original = originals[decoding.frames];
    decoding.add(original ? 1 : 0);
    if (!original) continue;
    const { blob, squares } = await ask('compareFrames', original, transfer(image, [image.data.buffer]));
    tell({ type: 'frame', blob, original, psnr: likeness.add(squares, size).value });
  }
  return [encoding.outcome(), decoding.outcome()];
}

/**
 * Joins the latents of a clip's parts to [1, c, t, h, w].
 * @param {import('../src/index.js').EncodedPart[]} parts
 */
function joined(parts) {
  const [, channels, , height, width] = parts[0].shape;
  const plane = height * width;
  const data = new Float32Array(channels * parts.length * plane);
  parts.forEach((part, frame) => {
    for (let channel = 0; channel < channels; channel += 1) {
      data.set(part.data.subarray(channel * plane, (channel + 1) * plane), (channel * parts.length + frame) * plane);
    }
  });
  return { data, shape: [1, channels, parts.length, height, width], unscaled: parts[0].unscaled };
}

/**
 * Returns notices about the parts of a footage that are not encoded.
 * @param {import('./news.js').Footage} footage
 * @param {number} factor pixels
 */
function remarks({ found, count, size }, factor) {
  const { width, height } = middle(size, factor);
  /** @type {import('./news.js').Notice[]} */
  const notices = [];
  if (found > count) notices.push({ code: 'frames-left-out', message: `the first ${count} of ${found} frames are taken` });
  const isCropped = width !== size.width || height !== size.height;
  const borders = `frames of ${size.width}x${size.height} pixels are encoded without their borders, as ${width}x${height}: the model takes multiples of ${factor}`;
  if (isCropped) notices.push({ code: 'cropped', message: borders });
  return notices;
}

/** Sum of the reports of a clip's parts. */
class Tally {
  #operation;
  #model;
  /** Reports of the parts before the current one. @type {import('./news.js').Report[]} */
  #reports = [];
  /** Report of the last part that gave frames. @type {import('./news.js').Report | undefined} */
  #last;
  #tell;
  frames = 0;

  /**
   * @param {import('./news.js').Operation} operation
   * @param {Decoder} model
   * @param {Listener} tell
   */
  constructor(operation, model, tell) {
    this.#operation = operation;
    this.#model = model;
    this.#tell = tell;
  }

  /**
   * Returns a listener that adds the clip's finished parts to its progress.
   * @param {number} frames of the clip, if their number is known
   * @param {number} after parts after that of the last latent
   * @returns {(progress: import('../src/index.js').Progress) => void}
   */
  progress(frames, after = 0) {
    const { info } = this.#model;
    const latents = this.#operation === 'encode' ? encodedLatents(info, frames) : latentsOfFrames(info, frames);
    const total = latents + after;
    return ({ part, finished, ...progress }) => {
      if (finished) this.#reports.push(finished);
      const done = part ?? this.#reports.length;
      this.#tell({ ...progress, parts: { done, total: Math.max(total, done + 1) } });
    };
  }

  /** @param {number} frames that the last part gave, or was made of */
  add(frames) {
    this.#last = this.#model.report;
    this.frames += frames;
  }

  /** @returns {ClipOutcome} */
  outcome() {
    const reports = this.#last ? [...this.#reports, this.#last] : this.#reports;
    const sum = (/** @type {(report: import('./news.js').Report) => number} */ of) => reports.reduce((total, report) => total + of(report), 0);
    const most = (/** @type {(report: import('./news.js').Report) => number} */ of) => Math.max(0, ...reports.map(of));
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
