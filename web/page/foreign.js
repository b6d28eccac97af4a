// @ts-check
// Addresses of other sites in a link. The author of the link chose them, so they may point into the
// visitor's own network.

import { isHubName } from '../src/hub-name.js';
import { element, setText } from './elements.js';

/** Origin of the hub, where models are requested by their names without asking. */
const HUB = 'https://huggingface.co';

/**
 * Returns addresses that belong neither to this site nor to the hub. Latents of the hub count, as
 * nothing tells their size before they are fetched.
 * @param {import('./query.js').Query} query
 */
export function foreignAddresses({ model = [], config, latents }) {
  const originOf = (/** @type {string} */ address) => (isHubName(address) ? HUB : new URL(address).origin);
  const files = [...model, config].filter((address) => address !== undefined).filter((address) => originOf(address) !== HUB);
  return [...files, latents].filter((address) => address !== undefined).filter((address) => originOf(address) !== location.origin);
}

/**
 * Asks the visitor for permission.
 * @param {string[]} addresses
 * @returns {Promise<boolean>}
 */
export async function mayFetch(addresses) {
  const dialog = element('ask-origin', HTMLDialogElement);
  setText('ask-origin-text', `The link to this page asks it to fetch ${addresses.join(' and ')}. Agree if you know this site.`);
  dialog.returnValue = '';
  const closed = new Promise((resolve) => dialog.addEventListener('close', resolve, { once: true }));
  dialog.showModal();
  await closed;
  return dialog.returnValue === 'yes';
}
