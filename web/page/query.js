// @ts-check
// Parameters of a link to the page:
// ?model=URL&config=URL&latents=URL&family=NAME&precision=f32&budget=MiB&index=2&unscaled=1. A
// model may also be hf:owner/name, as on the command line. &plan=... sets the sliders,
// &tiling=blend,256 the tiles to compare with: see explore.js and compare-tiles.js.

/** @typedef {'auto' | 'f16' | 'f32' | 'fast'} Precision */

/**
 * @typedef {{ model?: string[], config?: string, latents?: string, family?: string, precision?:
 * Precision, budget?: number, index?: number, unscaled?: boolean, plan?: string, tiling?: string,
 * }} Query `budget` is in MiB, `index` counts from 1; several `model` parameters are shards
 */

/**
 * @param {string | null} text
 * @returns {text is Precision}
 */
export function isPrecision(text) {
  return text === 'auto' || text === 'f16' || text === 'f32' || text === 'fast';
}

/**
 * @param {string} search
 * @returns {Query}
 */
export function readQuery(search) {
  const parameters = new URLSearchParams(search);
  const precision = parameters.get('precision');
  const [budget, index] = ['budget', 'index'].map((name) => Number(parameters.get(name)));
  return {
    model: parameters.getAll('model').map(absolute).filter((url) => url !== undefined),
    config: absolute(parameters.get('config')),
    latents: absolute(parameters.get('latents')),
    family: parameters.get('family') ?? undefined,
    precision: isPrecision(precision) ? precision : 'auto',
    budget: budget > 0 && Number.isFinite(budget) ? budget : undefined,
    index: index > 1 && Number.isInteger(index) ? index : undefined,
    unscaled: parameters.get('unscaled') === '1',
    plan: parameters.get('plan') ?? undefined,
    tiling: parameters.get('tiling') ?? undefined,
  };
}

/**
 * Returns the parameters as they stand in an address: '' if all have default values.
 * @param {Query} query
 */
export function writeQuery({ model = [], config, latents, family, precision, budget, index, unscaled, plan, tiling }) {
  const parameters = new URLSearchParams(model.map((url) => ['model', url]));
  const others = { config, latents, family, precision: precision === 'auto' ? undefined : precision, budget, index: index === 1 ? undefined : index, unscaled: unscaled ? 1 : undefined, plan, tiling };
  for (const [name, value] of Object.entries(others)) if (value) parameters.set(name, String(value));
  // These characters need no escapes, and addresses stay readable.
  const text = String(parameters).replace(/%3A/g, ':').replace(/%2F/g, '/').replace(/%2C/g, ',');
  return text && `?${text}`;
}

/**
 * Makes an address absolute, relative to the page; the worker would resolve it relative to its own
 * file.
 * @param {string | null} address
 * @returns {string | undefined} undefined unless it is an address
 */
export function absolute(address) {
  const text = address?.trim();
  if (!text) return undefined;
  try {
    return new URL(text, document.baseURI).href;
  } catch {
    return undefined;
  }
}
