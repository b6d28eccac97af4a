// Uses the package's types as an application would. It is only type-checked, never run.
import { clearCache, createDecoder, isSupported, planFor, WgvaeError, type AnyPicture, type Decoder, type Output, type Plan, type Vae } from 'wgvae';
import * as bundle from 'wgvae/dist/index.js';
import { useDecoder } from 'wgvae/react';
import * as worker from 'wgvae/worker';

declare function videoOf(file: File): ReadableStream<VideoFrame>;

export async function elsewhere(model: File, pictures: ImageBitmap[], canvas: HTMLCanvasElement): Promise<number> {
  await using vae = await worker.createVae({ model: worker.transfer(new Uint8Array(await model.arrayBuffer()), []), clips: true });
  const { predicted_peak_bytes: peak } = await vae.planEncode({ width: 8, height: 8 });
  const file: Blob = await vae.encode(pictures[0]!, { output: 'safetensors', seed: 7 });
  const { shape }: { shape: number[] } = await vae.encode(pictures[0]!, { output: 'moments' });
  console.log(file.size, shape);
  // @ts-expect-error the parts of a clip are no files
  vae.encodeClip(pictures, { output: 'npy' });
  for await (const frame of vae.clip(vae.encodeClip(pictures), { output: 'blob' })) {
    const size: number = frame.size;
    if (size > peak) break;
  }
  const video: ReadableStream<VideoFrame> = vae.clipStream(vae.encodeClip(videoOf(model), { width: 512, fit: 'contain' }), { output: 'video-frame', fps: 16 });
  await video.cancel();
  // @ts-expect-error the fit is contain
  vae.encode(pictures[0]!, { width: 512, fit: 'inside' });
  // @ts-expect-error one picture has no time
  vae.decode('latents.npy', { output: 'video-frame' });
  const nothing: undefined = await vae.decode('latents.npy', { canvas });
  // @ts-expect-error a worker has its own
  await worker.createDecoder({ model, fetch });
  // @ts-expect-error the limit is maxBufferSize
  console.log(vae.limits.maxBufferSize, vae.limits.maxBufferSizes);
  // @ts-expect-error it is a promise
  const bytes: number = vae.ledger().current;
  const { parts } = await planFor({ family: 'wan21', width: 8, height: 8, frames: 5 });
  return [nothing, bytes, parts, (await planFor({ family: 'sd15', width: 8, height: 8 })).macs].length;
}

export async function show(model: File, device: GPUDevice, latents: GPUBuffer, canvas: OffscreenCanvas): Promise<number> {
  const decoder: Decoder = await createDecoder({ model, device, precision: 'f16', memoryBudget: 1 << 29, onNotice: ({ code }) => console.log(code) });
  const plan: Plan = decoder.plan({ width: 512, height: 512 });
  const version: string = await bundle.version();
  console.log(version);
  const nothing: undefined = await decoder.decode({ buffer: latents, shape: [1, 4, 64, 64] }, { canvas });
  const bitmap: ImageBitmap = await decoder.decode({ data: new Float32Array(4), shape: [4, 1, 1] });
  const image: ImageData = await decoder.decode(new URL('https://example.org/latents.npy'), { output: 'image-data' });
  for await (const each of decoder.decodeEach('latents.safetensors', { output: 'blob' })) console.log(each.size);
  // @ts-expect-error each picture has its own index
  decoder.decodeEach('latents.safetensors', { index: 1 });
  const chosen: 'blob' | 'raw' = plan.macs > 0 ? 'blob' : 'raw';
  const any: AnyPicture | undefined = await decoder.decode('latents.safetensors', { output: chosen as Output });
  // @ts-expect-error it may be any output
  any?.close();
  // @ts-expect-error a blob or floats
  const neither: ImageBitmap = await decoder.decode('latents.safetensors', { output: chosen });
  console.log(neither);
  const { data, shape } = await decoder.decode('latents.safetensors', { output: 'raw', signal: AbortSignal.timeout(1000) });
  // @ts-expect-error there is no such precision
  await createDecoder({ model, precision: 'f8' }).catch((error) => (error instanceof WgvaeError ? error.smallest : undefined));
  const { report, info } = decoder;
  const storage: 'f32' | 'f16' | 'packed_f16' | 'fast_f16' = info.storage;
  const known: (number | string | boolean | undefined)[] = [report?.measured_peak_bytes, report?.stage_seconds?.length, info.frames_per_latent, info.adapter.limits.max_buffer_size, storage];
  // @ts-expect-error the field is measured_peak_bytes
  known.push(report?.peak_bytes);
  // @ts-expect-error the field is pixels_per_latent
  known.push(info.pixels_per_latents);
  // @ts-expect-error the field is device_type
  known.push(info.adapter.type);
  // @ts-expect-error the limit is max_buffer_size
  known.push(info.adapter.limits.maxBufferSize);
  // @ts-expect-error the kernels are winograd_tile
  known.push(info.adapter.kernels.winograd_tiles);
  const { webgpu, f16, cpu, reason }: { webgpu: boolean; f16: boolean; cpu: boolean; reason?: string } = await isSupported();
  console.log(known, webgpu, f16, cpu, reason);
  await clearCache();
  await decoder.destroy();
  return [nothing, plan.predicted_peak_bytes, bitmap.width, image.height, data.length, shape[1]].length;
}

export async function arrays({ decode, encode, clip }: Vae): Promise<void> {
  const shape = [1, 4, 1, 1];
  for (const data of [new Float32Array(4), new Uint16Array(4), new Float16Array(4)]) {
    await decode({ data, shape });
    await encode({ data, shape });
    clip({ data, shape });
  }
  // @ts-expect-error these are double floats
  await decode({ data: new Float64Array(4), shape });
  // @ts-expect-error these are whole numbers
  await decode({ data: new Int32Array(4), shape });
  // @ts-expect-error these are bytes
  await decode({ data: new Uint8Array(4), shape });
  // @ts-expect-error these are bytes, too
  await decode({ data: new Uint8ClampedArray(4), shape });
  // @ts-expect-error this is no typed array
  await decode({ data: [1, 2, 3, 4], shape });
  // @ts-expect-error these are double floats
  await encode({ data: new Float64Array(4), shape });
  // @ts-expect-error these are double floats
  clip({ data: new Float64Array(4), shape });
  await encode({ data: new Uint8ClampedArray(4), width: 1, height: 1 });
  // @ts-expect-error a picture of bytes has its own array
  await encode({ data: new Uint16Array(4), width: 1, height: 1 });
}

export function inReact(model: File | undefined): number {
  const { decoder, progress, error } = useDecoder(model && { model, precision: 'f32' });
  const { decoder: vae } = useDecoder({ model: 'hf:owner/name' }, worker.createVae);
  // @ts-expect-error a decoder does not encode
  void decoder?.encode(model);
  void vae?.encode(model!);
  // @ts-expect-error the hook has a signal of its own
  useDecoder({ model: 'taesd', signal: AbortSignal.timeout(1) });
  return (progress?.done ?? 0) + String(error).length;
}
