// @ts-check
// The first second: a preview of the demo's latents by a linear map, while the module and the model
// are still on their way. A pixel for each latent, made on the page's own thread.

/**
 * Colours, -1 to 1, as a linear map of a latent: `bias` + `factors` * latent, with red, green and
 * blue for each channel.
 * @typedef {{ bias: number[], factors: number[][] }} LinearMap
 */

/**
 * @param {{ latents: string, map: string }} addresses of a .safetensors file with one tensor of
 * halves, [1, c, h, w], and of its map
 * @returns {Promise<ImageBitmap>}
 */
export async function firstLook({ latents, map }) {
  const [file, linear] = await Promise.all([fetch(latents).then((answer) => answer.arrayBuffer()), fetch(map).then((answer) => answer.json())]);
  const start = 8 + Number(new DataView(file).getBigUint64(0, true));
  const header = JSON.parse(new TextDecoder().decode(new Uint8Array(file, 8, start - 8)));
  const [, , height, width] = header.latents.shape;
  return createImageBitmap(pictureOf(linear, fromHalves(new Uint16Array(file.slice(start))), width, height));
}

/**
 * @param {LinearMap} map
 * @param {Float32Array} values [c, h, w]
 * @param {number} width
 * @param {number} height
 */
function pictureOf({ bias, factors }, values, width, height) {
  const plane = width * height;
  const image = new ImageData(width, height);
  bias.forEach((level, colour) => {
    const sums = new Float32Array(plane).fill(level);
    factors.forEach((factor, channel) => {
      for (let at = 0; at < plane; at += 1) sums[at] += factor[colour] * values[channel * plane + at];
    });
    // Clamps by itself.
    for (let at = 0; at < plane; at += 1) image.data[4 * at + colour] = (sums[at] + 1) * 127.5;
  });
  for (let at = 0; at < plane; at += 1) image.data[4 * at + 3] = 255;
  return image;
}

/**
 * Returns the values of 16-bit floats, which not every browser reads. The smallest, below 2^-14,
 * become 0.
 * @param {Uint16Array} halves
 */
function fromHalves(halves) {
  const bits = new Uint32Array(halves.length);
  for (let at = 0; at < halves.length; at += 1) {
    const half = halves[at];
    if (half & 0x7c00) bits[at] = ((half & 0x8000) << 16) | (((half & 0x7fff) << 13) + 0x38000000);
  }
  return new Float32Array(bits.buffer);
}
