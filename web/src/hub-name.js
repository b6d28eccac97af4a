// @ts-check
// Names of models on the hub, as the command line takes them: hf:owner/name[/folder or .safetensors
// file][@revision]. Tiny autoencoders have short names.

import { mismatch } from './errors.js';
import { hub } from './hub.js';

const PREFIX = 'hf:';

/** Repositories of tiny autoencoders by their names, which are those of their families, too. */
const TINY = new Map(['taesd', 'taesdxl', 'taesd3', 'taef1'].map((family) => [family, `${PREFIX}madebyollin/${family}`]));

/** @param {string} address */
export function isHubName(address) {
  return address.startsWith(PREFIX);
}

/**
 * Finds the model that a text names on the hub: undefined for the address of a file. Throws for
 * `owner/name` without `hf:`, which is no address of a model.
 * @param {string} text
 * @returns {{ model: import('./hub.js').HubModel, family?: string } | undefined} `family`: the one
 * that a short name tells
 */
export function modelNamed(text) {
  const tiny = TINY.get(text);
  if (tiny) return { model: hubModel(tiny), family: text };
  if (isHubName(text)) return { model: hubModel(text) };
  if (!isBareName(text)) return undefined;
  const expected = `the address of a .safetensors file, hf:owner/name, or one of ${[...TINY.keys()].join(', ')}`;
  throw mismatch('input', 'model', expected, `"${text}" (did you mean "${PREFIX}${text}"? An address would be "./${text}")`);
}

/** @param {string} name a name that begins with hf: */
function hubModel(name) {
  const [path, revision] = name.slice(PREFIX.length).split(/@(.*)/s);
  const [owner, id = '', ...others] = path.replace(/\/+$/, '').split('/');
  const place = others.join('/') || undefined;
  return hub(`${owner}/${id}`, { revision, [place?.endsWith('.safetensors') ? 'file' : 'subfolder']: place });
}

/**
 * True for `owner/name`, but not for the path of a file such as `models/vae.ckpt`.
 * @param {string} text
 */
function isBareName(text) {
  return /^\w[\w.-]*\/\w[\w.-]*$/.test(text) && !/\.[a-z]+$/i.test(text);
}
