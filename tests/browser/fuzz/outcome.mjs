// @ts-check
// Allowed results of an operation: success with the right bytes, an error of a documented code, or
// the reason of an abort.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';

import { WgvaeError } from '../../../web/src/errors.js';

/** The documented error codes, from index.d.ts. */
const CODES = new Set(codesOf(readFileSync(new URL('../../../web/src/index.d.ts', import.meta.url), 'utf8')));

/** @param {string} types */
function codesOf(types) {
  const union = /export type ErrorCode =([^;]*);/.exec(types)?.[1] ?? '';
  const codes = [...union.matchAll(/'([a-z-]+)'/g)].map(([, code]) => /** @type {string} */ (code));
  assert.ok(codes.length > 10, 'the codes of index.d.ts');
  return codes;
}

/**
 * Fails unless `error` is a documented one.
 * @param {unknown} error
 * @param {readonly unknown[]} [reasons] of aborts
 */
export function checkError(error, reasons = []) {
  if (reasons.length > 0 && (reasons.includes(error) || (error instanceof DOMException && error.name === 'AbortError'))) return;
  if (error instanceof WgvaeError && CODES.has(error.code) && error.message.length > 0) return;
  throw new assert.AssertionError({ message: `rejected with what no caller is told of: ${error instanceof Error ? error.stack : String(error)}` });
}

/**
 * Fails unless `bytes` are the bytes at `offset` of one of the versions.
 * @param {Uint8Array} bytes
 * @param {number} offset
 * @param {number} length
 * @param {readonly Uint8Array[]} versions
 * @param {string} what
 */
export function checkBytes(bytes, offset, length, versions, what) {
  assert.ok(bytes instanceof Uint8Array, `${what}: a Uint8Array`);
  assert.equal(bytes.length, length, `${what}: the length of a read from ${offset}`);
  const isRight = versions.some((version) => length === 0 || (offset + length <= version.length && bytes.every((byte, index) => byte === version[offset + index])));
  assert.ok(isRight, `${what}: wrong bytes from ${offset}, ${length} of them`);
}
