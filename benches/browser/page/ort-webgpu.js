// @ts-check
// onnxruntime-web's WebGPU back end.
import * as ort from 'onnxruntime-web/webgpu';
import { nameOf } from './adapter.js';
import { openSession } from './ort.js';

/** @param {import('./measure.js').Job} job */
export async function open(job) {
  const system = await openSession(ort, 'webgpu', job);
  return {
    ...system,
    // onnxruntime-web chooses its adapter itself: the build of 1.30 does not read `powerPreference`
    // and `device` of `ort.env.webgpu`.
    describe: async () => ({ ...(await system.describe()), adapter: nameOf(await ort.env.webgpu.device) }),
  };
}
