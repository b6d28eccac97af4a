// @ts-check
// The header of a file of tensors, read before the package reads the file: number and shapes of the
// tensors.

/** Longest header, bytes. Headers of models are shorter. */
const LONGEST_HEADER = 8 << 20;

/** Bytes at the beginning of a .npy file that contain its shape. */
const NPY_BYTES = 1024;

/**
 * Returns the shapes of the tensors in a .safetensors or .npy file by name; undefined for any other
 * file.
 * @param {Blob} file
 * @returns {Promise<Record<string, number[]> | undefined>}
 */
export async function shapesIn(file) {
  try {
    const start = new Uint8Array(await file.slice(0, NPY_BYTES).arrayBuffer());
    const text = String.fromCharCode(...start);
    if (text.startsWith('\x93NUMPY')) {
      const [, shape] = /'shape': *\(([\d, ]*)\)/.exec(text) ?? [];
      return shape === undefined ? undefined : { '': shape.split(',').filter((axis) => axis.trim() !== '').map(Number) };
    }
    const length = Number(new DataView(start.buffer).getBigUint64(0, true));
    if (!(length <= LONGEST_HEADER)) return undefined;
    const { __metadata__: _, ...tensors } = JSON.parse(await file.slice(8, 8 + length).text());
    return Object.fromEntries(Object.entries(tensors).map(([name, tensor]) => [name, tensor?.shape]));
  } catch {
    // Not a valid file; opening it reports why.
    return undefined;
  }
}

/**
 * Returns the shape of the latents in a file, if it can be told.
 * @param {File} file
 */
export async function axesOf(file) {
  const shapes = (await shapesIn(file)) ?? {};
  const named = shapes.latents ?? shapes.latent_tensor;
  return named ?? Object.values(shapes).find((shape) => Array.isArray(shape) && shape.length >= 4);
}
