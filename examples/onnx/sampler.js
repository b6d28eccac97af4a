// @ts-check
// The part of ONNX Runtime: latents from noise, step by step, on the GPU.
import * as ort from 'onnxruntime-web/webgpu';

/** @typedef {{ data: Float32Array, shape: number[] }} HostLatents */

/** @param {URL} graph */
export async function openSampler(graph) {
  const session = await ort.InferenceSession.create(graph.href, {
    executionProviders: ['webgpu'],
    // Outputs stay on the GPU: a tensor has `gpuBuffer` instead of `data`.
    preferredOutputLocation: 'gpu-buffer',
  });
  return {
    /** ONNX Runtime's own device, which exists once a session does. */
    device: await ort.env.webgpu.device,
    /** @param {HostLatents} target @param {number} steps @param {HostLatents} noise */
    sample: (target, noise, steps) => sample(session, target, noise, steps),
    release: () => session.release(),
  };
}

/**
 * Yields the latents after each step. Each is the next step's input, so it is disposed of once the
 * caller asks for the next.
 * @param {import('onnxruntime-web').InferenceSession} session
 * @param {HostLatents} target
 * @param {HostLatents} noise
 * @param {number} steps
 */
async function* sample(session, target, noise, steps) {
  const goal = new ort.Tensor('float32', target.data, target.shape);
  let sample = new ort.Tensor('float32', noise.data, noise.shape);
  try {
    for (let step = 0; step < steps; step += 1) {
      const strength = new ort.Tensor('float32', [1 / (steps - step)], []);
      const { next } = await session.run({ sample, target: goal, strength });
      sample.dispose();
      sample = /** @type {typeof sample} */ (next);
      yield sample;
    }
  } finally {
    sample.dispose();
  }
}
