// @ts-check
// A clip as a WebM file, encoded by the browser.

import { loadMedia } from './media.js';

/**
 * Codecs in order of preference, with their names in mediabunny and in browsers.
 * @type {{ codec: 'vp9' | 'vp8', name: string, said: string }[]}
 */
const CODECS = [{ codec: 'vp9', name: 'vp09.00.41.08', said: 'VP9' }, { codec: 'vp8', name: 'vp8', said: 'VP8' }];

/**
 * Returns the codec with which this browser encodes frames of this size.
 * @param {import('./news.js').Size} size
 * @returns {Promise<{ codec: 'vp9' | 'vp8', said: string } | undefined>} undefined if it has none
 */
export async function webmCodec({ width, height }) {
  if (!('VideoEncoder' in globalThis)) return undefined;
  for (const { codec, name, said } of CODECS) {
    const { supported } = await VideoEncoder.isConfigSupported({ codec: name, width, height }).catch(() => ({ supported: false }));
    if (supported) return { codec, said };
  }
  return undefined;
}

/**
 * @param {readonly Blob[]} frames PNG files
 * @param {{ codec: 'vp9' | 'vp8', rate: number, onFrame: (done: number) => void }} options `rate`:
 * frames per second
 */
export async function toWebm(frames, { codec, rate, onFrame }) {
  const { BufferTarget, Output, QUALITY_VERY_HIGH, VideoSample, VideoSampleSource, WebMOutputFormat } = await loadMedia();
  const target = new BufferTarget();
  const output = new Output({ format: new WebMOutputFormat(), target });
  /** @type {InstanceType<typeof VideoSampleSource> | undefined} */
  let source;
  try {
    for (const [index, frame] of frames.entries()) {
      const bitmap = await createImageBitmap(frame);
      if (!source) {
        source = new VideoSampleSource({ codec, quality: QUALITY_VERY_HIGH });
        output.addVideoTrack(source);
        await output.start();
      }
      const sample = new VideoSample(bitmap, { timestamp: index / rate, duration: 1 / rate });
      await source.add(sample);
      sample.close();
      bitmap.close();
      onFrame(index + 1);
    }
    await output.finalize();
  } catch (error) {
    await output.cancel().catch(() => {});
    throw error;
  }
  return new Blob([target.buffer ?? new ArrayBuffer(0)], { type: 'video/webm' });
}
