// @ts-check
// onnxruntime-web's CPU back end: wasm with SIMD, and with threads because the page is cross-origin
// isolated.
import * as ort from 'onnxruntime-web/wasm';
import { openSession } from './ort.js';

/** @param {import('./measure.js').Job} job */
export async function open(job) {
  if (!crossOriginIsolated) throw new Error('ort-wasm: the page is not cross-origin isolated, so there would be no threads');
  ort.env.wasm.numThreads = job.threads ?? navigator.hardwareConcurrency;
  return openSession(ort, 'wasm', job);
}
