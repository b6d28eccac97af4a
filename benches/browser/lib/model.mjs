// @ts-check
// Reads the folder that make_model.py writes.
import { readFile } from 'node:fs/promises';
import path from 'node:path';

/** @typedef {{ size: number, flop: number, latents: string, golden: string | null }} Case */

/**
 * Returns the cases of the requested sizes, in ascending order.
 * @param {string} folder
 * @param {number[]} sizes pixels per side
 * @returns {Promise<Case[]>}
 */
export async function readCases(folder, sizes) {
  const file = path.join(folder, 'cases.json');
  const text = await readFile(file, 'utf8').catch((error) => {
    throw new Error(`${file}: ${error.code}; \`python benches/browser/make_model.py\` makes the model (it says what it needs)`);
  });
  /** @type {Case[]} */
  const cases = JSON.parse(text);
  return [...sizes].sort((a, b) => a - b).map((size) => {
    const found = cases.find((each) => each.size === size);
    if (!found) throw new Error(`${file}: no size ${size}, only ${cases.map((each) => each.size).join(', ')}; make_model.py --sizes makes others`);
    return found;
  });
}

/**
 * Returns torch's picture, or null if make_model.py made none.
 * @param {string} folder
 * @param {Case} each
 */
export async function readGolden(folder, each) {
  if (!each.golden) return null;
  return floats(await readFile(path.join(folder, each.golden)));
}

/**
 * Converts bytes to little-endian floats.
 * @param {Buffer} bytes
 */
export function floats(bytes) {
  return new Float32Array(bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.byteLength));
}
