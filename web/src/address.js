// @ts-check
// Parsing of addresses as callers write them.

import { mismatch } from './errors.js';

/** Start of relative addresses, if it is not this thread's own. @type {string | undefined} */
let start;

/** Sets the start of relative addresses: in a worker, that of its page. @param {string} [address] */
export function startFrom(address) {
  start = address;
}

/** Returns the address from which relative ones start. */
export function startOfAddresses() {
  return start ?? globalThis.document?.baseURI ?? globalThis.location?.href;
}

/**
 * @param {string | URL} input
 * @param {string} [advice] where no page is, and a path may be meant as that of a file
 */
export function parseUrl(input, advice = '') {
  try {
    return new URL(input, startOfAddresses());
  } catch (cause) {
    throw mismatch('input', 'URL', 'an address', `"${input}"${startOfAddresses() ? '' : advice}`, cause);
  }
}
