// @ts-check
// Explanations of errors in plain words, with advice.

import { formatBudget, formatSeconds } from './format.js';

/** @typedef {import('./news.js').Problem} Problem */

const NO_WEBGPU = [
  'Chrome and Edge: version 127 or later on Windows, macOS, ChromeOS and Android. On Linux turn on "Unsafe WebGPU Support" and "Vulkan" at chrome://flags (edge://flags) and start the browser again. Graphics acceleration must be on in the settings, under System.',
  'Firefox: version 141 or later on Windows, 145 on macOS with Apple silicon. Elsewhere set dom.webgpu.enabled and dom.webgpu.workers.enabled to true at about:config.',
  'Safari: version 26 or later on macOS, iOS, iPadOS and visionOS.',
  'In every browser, the page must come over https or from localhost.',
];

const WITHOUT_GPU = 'Choose auto, f16 or f32 as precision under Settings: the CPU then decodes.';

const NO_ADAPTER = [
  'Update the graphics driver and the browser.',
  'Turn on graphics (hardware) acceleration in the browser\'s settings.',
  'chrome://gpu, edge://gpu or about:support say why a GPU is blocked.',
];

const RETRY_SMALLER = ['Set a memory budget under Settings: the picture stays the same.', 'Close other pages and programs that use the GPU.'];

/** @type {Record<string, { title: string, advice?: string[] }>} */
const KNOWN = {
  'no-webgpu': { title: 'WebGPU is not available', advice: [WITHOUT_GPU, ...NO_WEBGPU] },
  'no-adapter': { title: 'No GPU available to the browser', advice: [WITHOUT_GPU, ...NO_ADAPTER] },
  'adapter-too-small': { title: 'This GPU is too small', advice: ['Try another browser, or another GPU of this machine.'] },
  'device-refused': { title: 'The GPU refused to start', advice: NO_ADAPTER },
  'device-lost': { title: 'The GPU device was lost', advice: ['Decode again: a new device will be opened.', ...RETRY_SMALLER] },
  'device-failed': { title: 'The GPU failed', advice: NO_ADAPTER.slice(0, 1) },
  'out-of-memory': { title: 'The device is out of memory', advice: RETRY_SMALLER },
  'host-memory': { title: 'There is not enough memory', advice: ['Set a larger memory budget, or none.'] },
  'too-large': { title: 'This is too large for the device', advice: RETRY_SMALLER.slice(0, 1) },
  budget: { title: 'The memory budget is too small' },
  format: { title: 'This file cannot be used', advice: ['Models are .safetensors files of an AutoencoderKL; latents are .safetensors, .latent or .npy; pictures and videos are any that this browser shows.'] },
  tensor: { title: 'A tensor has the wrong shape' },
  'missing-tensors': { title: 'The model lacks tensors', advice: ['Choose all shards at once, and the VAE rather than the text encoder or the UNet.'] },
  config: { title: 'The config.json is not supported' },
  input: { title: 'These files don\'t match', advice: ['Latents need as many channels as the model expects; a picture needs a model with an encoder, and a clip one for video. Without a config.json, choose the family under Settings.'] },
  'not-finite': { title: 'The picture overflowed', advice: ['Choose f32 under Settings.', 'Check that the latents are those of this model.'] },
  http: { title: 'The server did not send the file', advice: ['Check the address: it must lead to the file itself, not to a page about it.'] },
  network: { title: 'The server could not be reached', advice: ['Check the address and the connection. Servers must allow other sites to read their files (CORS).'] },
  truncated: { title: 'The download broke off', advice: ['Open it again.'] },
  changed: { title: 'The file changed while it was read', advice: ['Open it again.'] },
  io: { title: 'The file could not be read', advice: ['Open it again.'] },
  canvas: { title: 'The picture cannot be shown' },
  copy: { title: 'This could not be copied or shared' },
  internal: { title: 'The decoder crashed', advice: ['Choose the model again to start a new decoder.', 'Please report this message, unless there was too little memory.'] },
  wasm: { title: 'The browser refuses WebAssembly', advice: ['Allow WebAssembly for this page, or try another browser.'] },
};

/** Explanation for a model whose weights alone do not tell what it is. */
const NEEDS_CONFIG = {
  title: 'This model needs its config.json',
  advice: ['Choose the config.json together with the .safetensors file. At an address, it is looked for beside the model.', 'Or choose its family under Settings.'],
};

/** Words of an error before a program to run, such as one that converts a file. */
const BEFORE_CODE = /, in Python with torch and safetensors: /;

/** Advice for latents that the demo's model does not fit. */
const OF_DEMO = ['The demo\'s model fits only the demo\'s latents. Under Model, choose the VAE that made yours, or a known model.'];

/** Explanation for an address, a setting or a choice of files that says nothing clear. */
const UNREADABLE = { title: 'This cannot be read' };
const OF_UNREADABLE = /^(URL|model of the hub|revision, folder or file on the hub|memoryBudget): |^several files /;

/** Advice of the package to programs. */
const OF_PROGRAMS = ', or pass a `fetch` that asks a proxy';

/** A string of Python within double quotes, or the end of a statement. */
const STRING_OR_END = /("(?:[^"\\]|\\.)*")|; /g;

/** Advice for latents before the diffusion model's scale and patches. */
const OWN_LATENTS = ['They can be decoded as they are: the button below ticks "Latents are already unscaled" under Settings.'];

/** Codes of errors about a GPU that is not there. */
const NO_GPU = ['no-webgpu', 'no-adapter', 'adapter-too-small', 'device-refused'];

/** True if a setting needs a GPU that is not there. @param {string} code */
export function isWithoutGpu(code) {
  return NO_GPU.includes(code);
}

/**
 * True if a model cannot be opened without its config.json.
 * @param {{ code?: string, expected?: string }} problem
 */
export function needsConfig({ code, expected }) {
  return code === 'config' && /^a config\.json\b/.test(expected ?? '');
}

/**
 * @param {Problem} problem
 * @returns {{ title: string, message: string, code: string, advice: string[] }} `code`: lines of a
 * program, if the message ends with one
 */
export function explain(problem) {
  const { code, message, smallest, seconds, offer, ofDemo } = problem;
  const isUnreadable = code === 'input' && OF_UNREADABLE.test(message);
  const known = needsConfig(problem) ? NEEDS_CONFIG : isUnreadable ? UNREADABLE : (KNOWN[code] ?? { title: 'That did not work' });
  /** @type {{ title: string, advice?: string[] }} */
  const { title, advice = [] } = offer === 'unscaled' ? { ...known, advice: OWN_LATENTS } : code === 'input' && ofDemo && !isUnreadable ? { ...known, advice: OF_DEMO } : known;
  const [words, program = ''] = message.replace(OF_PROGRAMS, '').split(BEFORE_CODE);
  // Names of files keep their case.
  const sentence = /^[a-z]+( |,)/.test(words) ? words.charAt(0).toUpperCase() + words.slice(1) : words;
  const lines = program.replace(STRING_OR_END, (_, string) => string ?? '\n');
  if (code === 'budget' && smallest !== undefined) {
    const time = seconds === undefined ? '' : `, which takes about ${formatSeconds(seconds)}`;
    return { title, message: sentence, code: '', advice: [`The smallest budget found is ${formatBudget(smallest)}${time}.`] };
  }
  return { title, message: program ? `${sentence}, in Python with torch and safetensors` : sentence, code: lines, advice };
}
