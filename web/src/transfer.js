// @ts-check
// Values that move to another thread with their transferable objects, instead of being copied.

/** Transferable objects of each marked value. @type {WeakMap<object, Transferable[]>} */
const moving = new WeakMap();

/**
 * Marks `transferables` to move to the other side with `value`, and returns `value`.
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
 * Returns the objects that move with `value`; undefined if all of it is copied.
 * @param {object} value
 */
export function movingWith(value) {
  return moving.get(value);
}
