// @ts-check
// Reading of the shape of latents, and of errors in their file, without a model.

import { wgvaeError } from '../src/errors.js';
import { openLatents } from '../src/latents.js';
import { Access } from '../src/sources.js';
import { startWasm } from '../src/wasm.js';

/** @param {File} file */
export async function shapeOfLatents(file) {
  try {
    const latents = await openLatents(await startWasm(), file, new Access(new AbortController().signal, () => {}, false));
    const shape = [...latents.shape()];
    latents.free();
    return shape;
  } catch (error) {
    throw wgvaeError(error);
  }
}
