// @ts-check
// A small file at an address, as a File: fetched once, however often it is read.

import { nameOf, unanswered } from '../src/answers.js';
import { WgvaeError } from '../src/index.js';

/**
 * @param {string} url
 * @param {AbortSignal} signal
 */
export async function fetchFile(url, signal) {
  const response = await fetch(url, { signal }).catch((cause) => {
    signal.throwIfAborted();
    throw unanswered(new URL(url), cause);
  });
  const type = response.headers.get('Content-Type') ?? '';
  if (!response.ok) throw new WgvaeError('http', `${url}: expected status 200, found ${response.status}`, { status: response.status });
  if (/^text\/html\b/i.test(type)) throw new WgvaeError('http', `${url}: expected a file, found a web page (Content-Type: ${type})`);
  try {
    return new File([await response.blob()], nameOf(new URL(url)));
  } catch (cause) {
    signal.throwIfAborted();
    throw new WgvaeError('truncated', `${url}: the answer broke off`, { cause });
  }
}
