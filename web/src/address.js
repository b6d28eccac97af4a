// @ts-check
// Parsing of addresses as callers write them.

import { mismatch } from './errors.js';

/** @param {string | URL} input */
export function parseUrl(input) {
  // Relative addresses start from the page, in a worker from its script, as in fetch.
  const base = globalThis.document?.baseURI ?? globalThis.location?.href;
  try {
    return new URL(input, base);
  } catch (cause) {
    throw mismatch('input', 'URL', 'an address', `"${input}"`, cause);
  }
}
