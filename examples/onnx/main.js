// @ts-check
// The page: loads sampler and decoder onto one device, and decodes the sampler's latents onto the
// canvas.
import { createDecoder } from 'wgvae';
import { gaussianNoise, readLatents } from './latents.js';
import { openSampler } from './sampler.js';

const DEMO = new URL('../../assets/demo/', import.meta.url);

/** @template {HTMLElement} T @param {string} id @returns {T} */
const element = (id) => /** @type {T} */ (document.getElementById(id));
const form = /** @type {HTMLFormElement} */ (element('form'));
const button = /** @type {HTMLButtonElement} */ (element('run'));
const steps = /** @type {HTMLInputElement} */ (element('steps'));
const canvas = /** @type {HTMLCanvasElement} */ (element('canvas'));
const status = element('status');

// A link can set the number of steps.
steps.value = new URLSearchParams(location.search).get('steps') ?? steps.value;

async function load() {
  if (!navigator.gpu) throw new Error('this browser has no WebGPU');
  const sampler = await openSampler(new URL('step.onnx', import.meta.url));
  const decoder = await createDecoder({
    model: new URL('model/diffusion_pytorch_model.safetensors', DEMO),
    config: new URL('model/config.json', DEMO),
    // A buffer can be read only on the device that it belongs to.
    device: sampler.device,
  });
  return { sampler, decoder, target: await readLatents(new URL('latents.safetensors', DEMO)) };
}

/** @param {Awaited<ReturnType<typeof load>>} loaded @param {number} count */
async function run({ sampler, decoder, target }, count) {
  const noise = gaussianNoise(target.shape, 1);
  let step = 0;
  for await (const latents of sampler.sample(target, noise, count)) {
    step += 1;
    status.textContent = `Step ${step} of ${count}: decoding …`;
    // The latents are an ONNX Runtime tensor whose data is a GPUBuffer. The GPU draws the picture.
    await decoder.decode(latents, { canvas });
  }
  status.textContent = `Done: ${count} steps; the last decode took ${decoder.report?.seconds.toFixed(2)} s on the GPU.`;
}

/** Shows an error on the page, and with its stack in the console. @param {unknown} error */
function show(error) {
  console.error(error);
  status.textContent = `Error: ${error instanceof Error ? error.message : error}`;
}

/** @param {Awaited<ReturnType<typeof load>>} loaded */
async function runOnce(loaded) {
  button.disabled = true;
  await run(loaded, steps.valueAsNumber).catch(show);
  button.disabled = false;
}

try {
  const loaded = await load();
  form.addEventListener('submit', (event) => {
    event.preventDefault();
    runOnce(loaded);
  });
  await runOnce(loaded);
} catch (error) {
  show(error);
}
