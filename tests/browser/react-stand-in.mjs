// @ts-check
// The two functions of React that wgvae/react uses, for one component: state, and effects that run
// again when a dependency changes. Like React's StrictMode, it mounts twice.

/** @typedef {{ dependencies: unknown[], end?: () => void }} Effect */

/** @type {unknown[]} */
const states = [];
/** @type {Effect[]} */
const effects = [];
let [state, effect, isStale] = [0, 0, false];
/** @type {(() => void)[]} */
let begins = [];

/** @param {unknown} first */
export function useState(first) {
  const at = state++;
  if (!(at in states)) states[at] = first;
  /** @param {any} next a value, or a function of the value before */
  const set = (next) => {
    states[at] = typeof next === 'function' ? next(states[at]) : next;
    isStale = true;
  };
  return [states[at], set];
}

/**
 * @param {() => (() => void) | undefined} begin
 * @param {unknown[]} dependencies
 */
export function useEffect(begin, dependencies) {
  const at = effect++;
  const known = effects[at];
  if (known && known.dependencies.length !== dependencies.length) throw new Error('React wants the same number of dependencies');
  if (known?.dependencies.every((value, index) => Object.is(value, dependencies[index]))) return;
  begins.push(() => {
    effects[at]?.end?.();
    // StrictMode ends the first mount at once.
    if (!effects[at]) begin()?.();
    effects[at] = { dependencies, end: begin() };
  });
}

/**
 * Renders until no state changes, and returns what the component returned.
 * @template T
 * @param {() => T} component
 * @returns {T}
 */
export function render(component) {
  for (;;) {
    [state, effect, isStale] = [0, 0, false];
    const shown = component();
    begins.splice(0).forEach((begin) => begin());
    if (!isStale) return shown;
  }
}

export function unmount() {
  for (const { end } of effects.splice(0)) end?.();
  states.length = 0;
}
