// @ts-check
// Pictures that are encoded as a clip: the frames of a video, as far as the browser plays it, or
// several files.

import { WgvaeError } from '../src/index.js';
import { middle } from './crop.js';
import { loadMedia } from './media.js';
import { opaque, openOriginal, openPicture } from './original.js';
import { toPng } from './png.js';

/**
 * Reads the size of the pictures, their number as far as the file says, the frame rate of a video,
 * and the part of the first picture that will be encoded.
 * @param {File[]} files a video, or pictures in their order
 * @param {number} factor pixels, see crop.js
 * @returns {Promise<{ size: import('./news.js').Size, found: number, rate?: number, bitmap:
 * ImageBitmap }>}
 */
export async function openFootage(files, factor) {
  if (files.length > 1) return { ...(await openPicture(files[0], factor, 3)), found: files.length };
  const video = await openVideo(files[0]);
  try {
    for await (const picture of video.pictures(factor)) return { size: video.size, found: video.found, rate: video.rate, bitmap: await createImageBitmap(picture) };
  } finally {
    video.close();
  }
  throw new WgvaeError('format', 'this video has no frames');
}

/**
 * Yields the part of each picture that is encoded, as pixels and as a PNG file.
 * @param {File[]} files a video, or pictures in their order
 * @param {{ size: import('./news.js').Size, factor: number, most: number }} options `size`: of the
 * first picture; `most`: largest number of pictures to take
 * @returns {AsyncGenerator<{ picture: ImageData, png: Blob }, void, undefined>}
 */
export async function* framesOf(files, { size, factor, most }) {
  let count = 0;
  for await (const picture of files.length > 1 ? ofFiles(files, factor, size) : ofVideo(files[0], factor)) {
    yield { picture, png: await toPng(opaque(picture)) };
    count += 1;
    if (count === most) return;
  }
}

/**
 * @param {File[]} files
 * @param {number} factor
 * @param {import('./news.js').Size} size of every picture
 */
async function* ofFiles(files, factor, size) {
  for (const file of files) yield await openOriginal(file, factor, size);
}

/**
 * @param {File} file
 * @param {number} factor
 */
async function* ofVideo(file, factor) {
  const video = await openVideo(file);
  try {
    yield* video.pictures(factor);
  } finally {
    video.close();
  }
}

/** @param {File} file */
async function openVideo(file) {
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
    // Counts by the frames' start times, because files often do not tell the length of the last
    // one.
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
