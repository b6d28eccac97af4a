// @ts-check
// Values that move to another thread with what they are made of, instead of being copied.

/** What shall be moved with a value. @type {WeakMap<object, Transferable[]>} */
const moving = new WeakMap();

/**
 * `value`, with which these move to the other side instead of being copied.
 * @template {object} T
 * @param {T} value
 * @param {Transferable[]} transferables
 * @returns {T}
 */
export function transfer(value, transferables) {
  moving.set(value, transferables);
  return value;
}

/**
 * What moves with `value`; undefined if all of it is copied.
 * @param {object} value
 */
export function movingWith(value) {
  return moving.get(value);
}
