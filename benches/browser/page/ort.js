// @ts-check
// Common part of onnxruntime-web's two back ends, whose modules import different runtimes.

/**
 * @param {typeof import('onnxruntime-web')} ort
 * @param {'webgpu' | 'wasm'} provider
 * @param {import('./measure.js').Job} job
 */
export async function openSession(ort, provider, job) {
  const side = job.case.size / 8;
  const session = await ort.InferenceSession.create(new URL('decoder.onnx', job.model).href, {
    executionProviders: [provider],
    // The graph leaves the size open. It is fixed here, so that shapes are known before the first
    // decode.
    freeDimensionOverrides: { height: side, width: side },
  });
  return {
    /** @type {import('./measure.js').System['decode']} */
    async decode(data, shape) {
      const { image } = await session.run({ latents: new ort.Tensor('float32', data, shape) });
      return /** @type {Float32Array} */ (await image.getData());
    },
    async describe() {
      return { version: ort.env.versions.web, threads: provider === 'wasm' ? ort.env.wasm.numThreads : undefined };
    },
    async close() {
      await session.release();
    },
  };
}
