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
 * @returns {Promise<ImageData>}
 */
export async function firstLook({ latents, map }) {
  const [file, linear] = await Promise.all([fetch(latents).then((answer) => answer.arrayBuffer()), fetch(map).then((answer) => answer.json())]);
  const start = 8 + Number(new DataView(file).getBigUint64(0, true));
  const header = JSON.parse(new TextDecoder().decode(new Uint8Array(file, 8, start - 8)));
  const [, , height, width] = header.latents.shape;
  const values = Float32Array.from(new Uint16Array(file.slice(start)), fromHalf);
  return pictureOf(linear, values, width, height);
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
  for (let at = 0; at < plane; at += 1) {
    for (let colour = 0; colour < 3; colour += 1) {
      const level = factors.reduce((sum, factor, channel) => sum + factor[colour] * values[channel * plane + at], bias[colour]);
      // Clamps by itself.
      image.data[4 * at + colour] = (level + 1) * 127.5;
    }
    image.data[4 * at + 3] = 255;
  }
  return image;
}

/** Returns the value of a 16-bit float, which not every browser reads. @param {number} bits */
function fromHalf(bits) {
  const [sign, exponent, fraction] = [bits >> 15 ? -1 : 1, (bits >> 10) & 31, bits & 1023];
  if (exponent === 0) return (sign * fraction) / 2 ** 24;
  return sign * 2 ** (exponent - 25) * (1024 + fraction);
}
