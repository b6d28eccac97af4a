// @ts-check
// What the first bytes of a file of tensors say, before the package reads it: how many there are,
// and of what shape.

/** Headers of models are shorter; what is longer is no header. */
const LONGEST_HEADER = 8 << 20;

/** Of a .npy file's beginning, which has its shape. */
const NPY_BYTES = 1024;

/**
 * Shapes of the tensors in a .safetensors or .npy file by their names; undefined for any other.
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
    // Not a file that anything can be made of; opening it says why.
    return undefined;
  }
}

/**
 * The shape of the latents in a file, as far as it tells.
 * @param {File} file
 */
export async function axesOf(file) {
  const shapes = (await shapesIn(file)) ?? {};
  const named = shapes.latents ?? shapes.latent_tensor;
  return named ?? Object.values(shapes).find((shape) => Array.isArray(shape) && shape.length >= 4);
}
