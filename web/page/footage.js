// @ts-check
// Pictures that are encoded as a clip: of a video, as far as the browser plays it, or of several files.

import { WgvaeError } from '../src/index.js';
import { middle } from './crop.js';
import { loadMedia } from './media.js';
import { Original } from './original.js';

/** So many of a video's frames, or of files, are taken: what is made of them is kept until something else is shown. */
const MOST_FRAMES = 241;

/**
 * What gives the pictures. `found`: how many there are, as far as the file says; `rate`: frames a second, where it is a video.
 * @typedef {{ size: import('./protocol.js').Size, found: number, rate?: number, pictures: (factor: number) => AsyncGenerator<ImageData, void, undefined>, close: () => void }} Source
 */

export class Footage {
  #source;

  /** @param {Source} source */
  constructor(source) {
    this.#source = source;
  }

  /** @param {File[]} files a video, or pictures in their order */
  static async open(files) {
    return new Footage(files.length > 1 ? await ofFiles(files) : await ofVideo(files[0]));
  }

  get size() {
    return this.#source.size;
  }

  /** Frames a second. @returns {number | undefined} */
  get rate() {
    return this.#source.rate;
  }

  /** Frames that are taken. */
  get count() {
    return Math.min(this.#source.found, MOST_FRAMES);
  }

  /** What is not taken of it, in words. @param {number} factor pixels */
  remarks(factor) {
    const { found, size } = this.#source;
    const { width, height } = middle(size, factor);
    /** @type {import('./protocol.js').Notice[]} */
    const notices = [];
    if (found > MOST_FRAMES) notices.push({ code: 'frames-left-out', message: `the first ${MOST_FRAMES} of ${found} frames are taken` });
    const isCropped = width !== size.width || height !== size.height;
    const borders = `frames of ${size.width}x${size.height} pixels are encoded without their borders, as ${width}x${height}: the model takes multiples of ${factor}`;
    return isCropped ? [...notices, /** @type {import('./protocol.js').Notice} */ ({ code: 'cropped', message: borders })] : notices;
  }

  /** What is encoded of each. @param {number} factor pixels */
  async *pictures(factor) {
    let count = 0;
    for await (const picture of this.#source.pictures(factor)) {
      yield picture;
      count += 1;
      if (count === MOST_FRAMES) return;
    }
  }

  /** What is encoded of the first one, to be shown. @param {number} factor pixels */
  async first(factor) {
    for await (const picture of this.pictures(factor)) return createImageBitmap(picture);
    throw new WgvaeError('format', 'this video has no frames');
  }

  close() {
    this.#source.close();
  }
}

/**
 * @param {File[]} files
 * @returns {Promise<Source>}
 */
async function ofFiles(files) {
  const { size } = await opened(files[0], (original) => ({ size: original.size }));
  const pictures = async function* (/** @type {number} */ factor) {
    for (const file of files) {
      yield await opened(file, (original) => {
        const { width, height } = original.size;
        if (width === size.width && height === size.height) return original.pixels(factor);
        throw new WgvaeError('input', `${file.name}: expected ${size.width}x${size.height} pixels, as ${files[0].name} has, found ${width}x${height}`);
      });
    }
  };
  return { size, found: files.length, pictures, close: () => {} };
}

/**
 * What `read` gives of a picture file.
 * @template T
 * @param {File} file
 * @param {(original: Original) => T} read
 */
async function opened(file, read) {
  const original = await Original.open(file);
  try {
    return read(original);
  } finally {
    original.close();
  }
}

/**
 * @param {File} file
 * @returns {Promise<Source>}
 */
async function ofVideo(file) {
  if (!('VideoDecoder' in globalThis)) throw new WgvaeError('input', `${file.name}: this browser does not take frames from videos (it has no WebCodecs): choose its frames as pictures`);
  const { ALL_FORMATS, BlobSource, EncodedPacketSink, Input, VideoSampleSink } = await loadMedia();
  const input = new Input({ source: new BlobSource(file), formats: ALL_FORMATS });
  try {
    const track = await input.getPrimaryVideoTrack();
    if (!track) throw new Error('it has no pictures');
    if (!(await track.canDecode())) throw new Error(`of ${(await track.getCodec()) ?? 'an unknown codec'}`);
    const [width, height] = [await track.getDisplayWidth(), await track.getDisplayHeight()];
    const { packetCount: found } = await track.computePacketStats();
    const [first, last] = [await track.getFirstTimestamp(), await new EncodedPacketSink(track).getPacket(Infinity, { metadataOnly: true })];
    // By when frames begin: how long the last one is, files often do not say.
    const rate = last && found > 1 && last.timestamp > first ? (found - 1) / (last.timestamp - first) : undefined;
    const sink = new VideoSampleSink(track);
    const pictures = async function* (/** @type {number} */ factor) {
      const part = middle({ width, height }, factor);
      const context = new OffscreenCanvas(part.width, part.height).getContext('2d', { willReadFrequently: true });
      if (!context) throw new WgvaeError('canvas', 'the browser has no canvas to read frames from');
      try {
        for await (const sample of sink.samples()) {
          sample.draw(context, -part.x, -part.y, width, height);
          sample.close();
          yield context.getImageData(0, 0, part.width, part.height);
        }
      } catch (cause) {
        throw unreadable(file, cause);
      }
    };
    return { size: { width, height }, found, rate, pictures, close: () => input.dispose() };
  } catch (cause) {
    input.dispose();
    throw unreadable(file, cause);
  }
}

/**
 * @param {File} file
 * @param {unknown} cause
 */
function unreadable(file, cause) {
  return new WgvaeError('format', `${file.name}: expected a video that this browser plays (${cause instanceof Error ? cause.message : cause})`, { cause });
}
