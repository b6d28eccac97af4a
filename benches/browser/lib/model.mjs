// @ts-check
// The folder that make_model.py writes.
import { readFile } from 'node:fs/promises';
import path from 'node:path';

/** @typedef {{ size: number, flop: number, latents: string, golden: string | null }} Case */

/**
 * The cases of the sizes asked for, in ascending order.
 * @param {string} folder
 * @param {number[]} sizes pixels a side
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
 * torch's picture, or null where make_model.py had none made.
 * @param {string} folder
 * @param {Case} each
 */
export async function readGolden(folder, each) {
  if (!each.golden) return null;
  return floats(await readFile(path.join(folder, each.golden)));
}

/**
 * Bytes as little-endian floats.
 * @param {Buffer} bytes
 */
export function floats(bytes) {
  return new Float32Array(bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.byteLength));
}
