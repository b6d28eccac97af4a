// @ts-check
// Fused multiply-adds of the modules for the CPU. The modules have products and sums instead, as
// some engines lack relaxed SIMD; a `nop` marks those that may be fused. xtask-bindgen makes them.

/**
 * A module with one function that returns a fused multiply-add, `f32x4.relaxed_madd`, of zeros.
 */
const WITH_FUSED = Uint8Array.of(0, 97, 115, 109, 1, 0, 0, 0, 1, 5, 1, 96, 0, 1, 123, 3, 2, 1, 0, 10, 19, 1, 17, 0, 65, 0, 253, 17, 65, 0, 253, 17, 65, 0, 253, 17, 253, 133, 2, 11);

/**
 * `f32x4.mul`, `nop` and `local.get`. A local of one or two bytes follows, and then the sum.
 */
const PRODUCT = [0xfd, 0xe6, 0x01, 0x01, 0x20];
/** `f32x4.add` */
const SUM = [0xfd, 0xe4, 0x01];
/** `f32x4.relaxed_madd` */
const FUSED = [0xfd, 0x85, 0x02];

/** True if the engine has fused multiply-adds. */
export const canFuse = () => WebAssembly.validate(WITH_FUSED);

/**
 * Returns a copy of a module in which marked products and sums are fused.
 * @param {BufferSource} module
 */
export function fuse(module) {
  const bytes = ArrayBuffer.isView(module) ? new Uint8Array(module.buffer, module.byteOffset, module.byteLength) : new Uint8Array(module);
  const fused = bytes.slice();
  const has = (/** @type {number[]} */ wanted, /** @type {number} */ at) => wanted.every((byte, index) => fused[at + index] === byte);
  for (let at = fused.indexOf(PRODUCT[0]); at !== -1; at = fused.indexOf(PRODUCT[0], at + 1)) {
    if (!has(PRODUCT, at)) continue;
    const local = at + PRODUCT.length;
    const sum = local + (fused[local] < 0x80 ? 1 : 2);
    if (!has(SUM, sum)) continue;
    // Three `nop` in place of the product.
    fused.fill(1, at, at + 3);
    fused.set(FUSED, sum);
  }
  return fused;
}
