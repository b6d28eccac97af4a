// @ts-check
// Runs in the page: opens one system, decodes one size several times, and returns the times and the
// picture.

/**
 * @typedef {object} Job
 * @property {string} module the system's module, as a URL
 * @property {string} model the folder that make_model.py wrote, as a URL that ends in a slash
 * @property {{ size: number, latents: string }} case
 * @property {number} runs decodes, the first included
 * @property {number} patience seconds; no further decode after one that took longer
 * @property {'f32' | 'f16'} [precision]
 * @property {'webgpu' | 'cpu'} [device]
 * @property {number} [threads]
 */

/**
 * Exports of a system's module: `open(job)` loads the model for pictures of the job's size.
 * `decode` resolves once the picture is in the page's memory: [3, size, size] f32, about -1..1.
 * @typedef {object} System
 * @property {(latents: Float32Array, shape: number[]) => Promise<Float32Array>} decode
 * @property {() => Promise<object>} describe returns facts about the system after decoding
 * @property {() => Promise<void>} close
 */

/** @param {Job} job */
export async function measure(job) {
  const { open } = await import(job.module);
  const latents = await fetchFloats(new URL(job.case.latents, job.model));
  const side = job.case.size / 8;

  const began = performance.now();
  /** @type {System} */
  const system = await open(job);
  const openSeconds = since(began);
  try {
    const { seconds, picture } = await decodeSeveral(system, latents, [1, 4, side, side], job);
    return { openSeconds, seconds, picture: await base64(picture), about: await system.describe() };
  } finally {
    await system.close();
  }
}

/**
 * @param {System} system
 * @param {Float32Array} latents
 * @param {number[]} shape
 * @param {Job} job
 */
async function decodeSeveral(system, latents, shape, job) {
  const expected = 3 * job.case.size ** 2;
  const seconds = [];
  /** @type {Float32Array} */
  let picture;
  do {
    const began = performance.now();
    picture = await system.decode(latents, shape);
    seconds.push(since(began));
    if (picture.length !== expected) throw new Error(`picture: expected ${expected} values, found ${picture.length}`);
  } while (seconds.length < job.runs && seconds[seconds.length - 1] < job.patience);
  return { seconds, picture };
}

/** Returns the adapter and the browser, for the head of the report. */
export async function describeBrowser() {
  const adapter = await navigator.gpu?.requestAdapter({ powerPreference: 'high-performance' });
  const { vendor, architecture, device, description } = adapter?.info ?? {};
  return {
    userAgent: navigator.userAgent,
    cores: navigator.hardwareConcurrency,
    isolated: crossOriginIsolated,
    adapter: adapter ? { vendor, architecture, device, description, f16: adapter.features.has('shader-f16') } : null,
  };
}

/** @param {URL} url */
async function fetchFloats(url) {
  const response = await fetch(url);
  if (!response.ok) throw new Error(`${url}: HTTP ${response.status}`);
  return new Float32Array(await response.arrayBuffer());
}

/**
 * Returns the bytes as a string that can be sent to run.mjs.
 * @param {Float32Array} values
 * @returns {Promise<string>}
 */
function base64(values) {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve(String(reader.result).split(',')[1] ?? '');
    reader.onerror = () => reject(reader.error);
    reader.readAsDataURL(new Blob([/** @type {BlobPart} */ (values)]));
  });
}

/** @param {number} began */
const since = (began) => (performance.now() - began) / 1000;
