// @ts-check
// Checks of servers' answers: the length of a file, its version, and the range that was sent.

import { messageOf, mismatch, WgvaeError } from './errors.js';
import { secondsToWait } from './retry.js';

/** Advice on a missing answer of another origin, of which browsers do not tell more. */
const CORS = '; if the server is up, it may not let this page read the file (CORS): let it send Access-Control-Allow-Origin, or use a copy on this origin';

/**
 * @param {URL} url
 * @param {Response} response
 * @param {string} expected
 */
export async function refused(url, response, expected) {
  await response.body?.cancel().catch(() => {});
  const { status, statusText, headers } = response;
  const found = `${status} ${statusText}`.trim();
  // A server of another origin has to expose this header.
  const retryAfter = secondsToWait(headers.get('Retry-After'), Date.now());
  const limit = status === 429 ? ', a limit on how often it may be asked' : '';
  const wait = retryAfter === undefined ? '' : `, to be asked again in ${Math.ceil(retryAfter)} s`;
  const message = `${url}: expected status ${expected}, found ${found}${limit}${wait}`;
  return new WgvaeError('http', message, { expected: `status ${expected}`, found, status, ...(retryAfter !== undefined && { retryAfter }) });
}

/**
 * Returns the error for a missing answer. Browsers give one reason for all causes.
 * @param {URL} url
 * @param {unknown} cause
 */
export function unanswered(url, cause) {
  const proxy = isForeign(url) ? ', or pass a `fetch` that asks a proxy' : '';
  return new WgvaeError('network', `${url}: no answer (${messageOf(cause)})${corsAdvice(url)}${proxy}`, { cause });
}

/** Returns advice for an address of another origin. @param {URL | string} url */
export function corsAdvice(url) {
  return isForeign(url) ? CORS : '';
}

/** @param {URL | string} url */
function isForeign(url) {
  const here = globalThis.location;
  try {
    return here !== undefined && new URL(url, here.href).origin !== here.origin;
  } catch {
    // No address at all.
    return false;
  }
}

/**
 * Throws if the answer is a web page instead of a file: a login, or a server that answers every
 * address with its start page.
 * @param {URL} url
 * @param {Response} response
 */
export function checkType(url, response) {
  const type = response.headers.get('Content-Type') ?? '';
  if (!/^text\/html\b/i.test(type)) return;
  response.body?.cancel().catch(() => {});
  throw mismatch('http', `${url}`, 'a file', `a web page (Content-Type: ${type})`);
}

/**
 * Returns the length of the file whose answer is whole; undefined if the answer does not tell it.
 * @type {(response: Response) => number | undefined}
 */
export function lengthOf({ headers, type }) {
  const text = headers.get('Content-Length');
  // Answers of another origin always show the length, but the encoding only if the server exposes
  // it.
  const encoding = headers.get('Content-Encoding') ?? (type === 'cors' ? 'unknown' : 'identity');
  // For a compressed answer, this is the compressed length.
  return text === null || encoding !== 'identity' ? undefined : Number(text);
}

/**
 * @param {URL} url
 * @param {Response} response
 * @returns {{ first: number, last: number, total: number | undefined } | undefined} undefined if
 * the header may not be read
 */
export function contentRange(url, response) {
  checkType(url, response);
  const text = response.headers.get('Content-Range');
  // A server of another origin has to expose this header.
  if (text === null) return undefined;
  const match = /^bytes (\d+)-(\d+)\/(\d+|\*)$/.exec(text.trim());
  if (!match) throw mismatch('http', `Content-Range of ${url}`, '"bytes FIRST-LAST/LENGTH"', `"${text}"`);
  return { first: Number(match[1]), last: Number(match[2]), total: match[3] === '*' ? undefined : Number(match[3]) };
}

/**
 * @param {URL} url
 * @param {Response} response
 * @param {{ first: number, last: number }} range the range that the answer claims to be, first and
 * last byte
 * @param {number} offset
 * @param {number} length
 */
export async function checkRange(url, response, { first, last }, offset, length) {
  if (first === offset && last === offset + length - 1) return;
  await response.body?.cancel().catch(() => {});
  throw mismatch('http', `Content-Range of ${url}`, `bytes ${offset}-${offset + length - 1}`, `bytes ${first}-${last}`);
}

/** @param {Response} response */
export function validators(response) {
  return { etag: response.headers.get('ETag'), modified: response.headers.get('Last-Modified') };
}

/**
 * Returns the bytes of the answer. Throws `truncated` unless they are as many as expected, if that
 * is known.
 * @param {URL} url
 * @param {Response} response
 * @param {number} [expected]
 */
export async function body(url, response, expected) {
  const told = response.headers.get('Content-Length');
  const whole = expected === undefined ? (told ? `${told} bytes` : 'a whole answer') : `${expected} bytes`;
  let bytes;
  try {
    bytes = new Uint8Array(await response.arrayBuffer());
  } catch (cause) {
    if (cause instanceof DOMException && cause.name === 'AbortError') throw cause;
    throw mismatch('truncated', `${url}`, whole, `one that broke off (${messageOf(cause)})`, cause);
  }
  if (expected === undefined || bytes.length === expected) return bytes;
  throw mismatch(bytes.length < expected ? 'truncated' : 'http', `${url}`, whole, `${bytes.length} bytes`);
}

/** @param {URL} url */
export function nameOf(url) {
  const part = url.pathname.split('/').at(-1) ?? '';
  try {
    return decodeURIComponent(part) || url.host;
  } catch {
    // A % that is no escape.
    return part;
  }
}
