// @ts-check
// The three examples that come with the page: latents, a picture to encode, and a clip.

import { element } from './elements.js';

/** @typedef {import('./news.js').ModelChoice} ModelChoice */
/** @typedef {import('./news.js').InputChoice} InputChoice */
/** @typedef {{ name: string, model: ModelChoice, input: InputChoice }} Example */

const FILES = { model: ownUrl('assets/demo/model/diffusion_pytorch_model.safetensors'), config: ownUrl('assets/demo/model/config.json') };

/** @type {ModelChoice} */
const MODEL = { name: 'Demo model', urls: [FILES.model], config: FILES.config, isDemo: true };

/** A small model for clips, with the layers of TAEHV. @type {ModelChoice} */
const CLIP_MODEL = {
  name: 'Demo model for clips',
  urls: [ownUrl('assets/demo/clip/diffusion_pytorch_model.safetensors')],
  family: 'taehv',
  isDemo: true,
};

/** Latents of the demo, and their linear map to colours. */
export const FIRST_LOOK = { latents: ownUrl('assets/demo/latents.safetensors'), map: ownUrl('assets/demo/linear.json') };

/** The demo, which the page decodes by itself. @type {Example} */
export const LATENTS = { name: 'the demo', model: MODEL, input: { url: FIRST_LOOK.latents, isDemo: true } };

/** @type {Example} */
const PICTURE = { name: 'the example picture', model: MODEL, input: { url: ownUrl('assets/demo/landscape.jpg'), kind: 'picture', isDemo: true } };

/** @type {Example} */
const CLIP = { name: 'the example clip', model: CLIP_MODEL, input: { url: ownUrl('assets/demo/clip/latents.safetensors'), kind: 'clip', isDemo: true } };

/** The demo's model, with latents and the picture that diffusers makes of them. */
export const SELFTEST = { ...FILES, reference: ownUrl('assets/demo/selftest.safetensors') };

/** @param {(example: Example) => void} onChoice */
export function listenToExamples(onChoice) {
  for (const [name, example] of Object.entries({ latents: LATENTS, picture: PICTURE, clip: CLIP })) {
    element(`example-${name}`).addEventListener('click', () => onChoice(example));
  }
}

/** Returns the address of one of the page's own files. @param {string} path */
function ownUrl(path) {
  return new URL(path, document.baseURI).href;
}
