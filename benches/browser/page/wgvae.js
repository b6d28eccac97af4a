// @ts-check
// wgvae as a system of the comparison.
import * as here from 'wgvae';
import * as there from 'wgvae/worker';
import { nameOf } from './adapter.js';

/** @param {import('./measure.js').Job} job */
export async function open(job) {
  // On the CPU only a worker may have threads.
  const { createDecoder } = job.device === 'cpu' ? there : here;
  const decoder = await createDecoder({
    model: new URL('model/diffusion_pytorch_model.safetensors', job.model),
    config: new URL('model/config.json', job.model),
    precision: job.precision ?? 'f32',
    device: job.device ?? 'webgpu',
    threads: job.threads,
    powerPreference: 'high-performance',
  });
  return {
    /** @type {import('./measure.js').System['decode']} */
    async decode(data, shape) {
      return (await decoder.decode({ data, shape }, { output: 'raw' })).data;
    },
    async describe() {
      if (!decoder.report) throw new Error('wgvae: no report, so nothing was decoded');
      const { predicted_peak_bytes, measured_peak_bytes, submissions, compile_seconds } = decoder.report;
      // The CPU is no adapter that others could have.
      const adapter = 'device' in decoder && decoder.device ? nameOf(decoder.device) : undefined;
      return { predicted_peak_bytes, measured_peak_bytes, submissions: submissions.length, compile_seconds, adapter };
    },
    async close() {
      decoder.destroy();
    },
  };
}
