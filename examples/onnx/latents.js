// @ts-check
// Start and end of this example: noise, and the latents of the demo picture.

/** @typedef {import('./sampler.js').HostLatents} HostLatents */

/**
 * Reads the f16 tensor `latents` of a .safetensors file as f32: not every GPU has f16 for ONNX
 * Runtime to cast from.
 * @param {URL} url
 * @returns {Promise<HostLatents>}
 */
export async function readLatents(url) {
  const response = await fetch(url);
  if (!response.ok) throw new Error(`${url}: HTTP ${response.status}`);
  const file = await response.arrayBuffer();
  // Eight bytes with the header's length, the header in JSON, then the tensors' bytes.
  const start = 8 + Number(new DataView(file).getBigUint64(0, true));
  const { latents } = JSON.parse(new TextDecoder().decode(file.slice(8, start)));
  if (latents.dtype !== 'F16') throw new Error(`${url}: expected F16, found ${latents.dtype}`);
  const [from, to] = latents.data_offsets;
  return { data: fromHalves(new Uint16Array(file.slice(start + from, start + to))), shape: latents.shape };
}

/**
 * Returns normally distributed values. The same seed gives the same values.
 * @param {number[]} shape
 * @param {number} seed
 * @returns {HostLatents}
 */
export function gaussianNoise(shape, seed) {
  const data = new Float32Array(shape.reduce((product, side) => product * side, 1));
  const uniform = uniformNumbers(seed);
  for (let i = 0; i < data.length; i += 1) {
    // The Box-Muller transform, with 1 - u because the logarithm of 0 is not finite.
    data[i] = Math.sqrt(-2 * Math.log(1 - uniform())) * Math.cos(2 * Math.PI * uniform());
  }
  return { data, shape };
}

/**
 * Returns a linear congruential generator (constants of Numerical Recipes) of numbers in [0, 1).
 * @param {number} seed
 */
function uniformNumbers(seed) {
  let state = seed >>> 0;
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 32;
  };
}

/**
 * Converts IEEE half floats, given by their bits: some browsers with WebGPU lack Float16Array.
 * @param {Uint16Array} halves
 */
function fromHalves(halves) {
  return Float32Array.from(halves, (half) => {
    const sign = half & 0x8000 ? -1 : 1;
    const exponent = (half >> 10) & 0x1f;
    const fraction = (half & 0x3ff) / 0x400;
    if (exponent === 0) return sign * fraction * 2 ** -14;
    if (exponent === 0x1f) return fraction ? NaN : sign * Infinity;
    return sign * (1 + fraction) * 2 ** (exponent - 15);
  });
}
