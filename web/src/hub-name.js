// @ts-check
// Names of models on the hub, as the command line takes them: hf:owner/name[/folder or .safetensors
// file][@revision].

import { hub } from './hub.js';

const PREFIX = 'hf:';

/** @param {string} address */
export function isHubName(address) {
  return address.startsWith(PREFIX);
}

/** @param {string} address a name that begins with hf: */
export function hubModel(address) {
  const [path, revision] = address.slice(PREFIX.length).split(/@(.*)/s);
  const [owner, name = '', ...others] = path.replace(/\/+$/, '').split('/');
  const place = others.join('/') || undefined;
  return hub(`${owner}/${name}`, { revision, [place?.endsWith('.safetensors') ? 'file' : 'subfolder']: place });
}
