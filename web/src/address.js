// @ts-check
// Addresses as callers write them.

import { mismatch } from './errors.js';

/** @param {string | URL} input */
export function parseUrl(input) {
  // In a page addresses are the page's, in a worker the script's: the same as for fetch.
  const base = globalThis.document?.baseURI ?? globalThis.location?.href;
  try {
    return new URL(input, base);
  } catch (cause) {
    throw mismatch('input', 'URL', 'an address', `"${input}"`, cause);
  }
}
