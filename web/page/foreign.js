// @ts-check
// Addresses of other sites in a link. The author of the link chose them, so they may point into the
// visitor's own network.

import { isHubName } from '../src/hub-name.js';
import { element, setText } from './elements.js';

/** Origin of the hub, where models are requested by their names without asking. */
const HUB = 'https://huggingface.co';

/**
 * Returns addresses that belong neither to this site nor to the hub.
 * @param {import('./query.js').Query} query
 */
export function foreignAddresses({ model = [], config, latents }) {
  const addresses = [...model, config, latents].filter((address) => address !== undefined);
  return addresses.filter((address) => !isHubName(address) && ![location.origin, HUB].includes(new URL(address).origin));
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
