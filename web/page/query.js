// @ts-check
// What a link to the page can ask for: ?model=URL&config=URL&latents=URL&family=NAME&precision=f32&budget=MiB

/**
 * @typedef {{
 *   model?: string[], config?: string, latents?: string, family?: string, precision?: 'auto' | 'f16' | 'f32', budget?: number,
 * }} Query `budget` is in MiB; several `model`s are shards
 */

/**
 * @param {string} search
 * @returns {Query}
 */
export function readQuery(search) {
  const parameters = new URLSearchParams(search);
  const precision = parameters.get('precision');
  const budget = Number(parameters.get('budget'));
  return {
    model: parameters.getAll('model').map(absolute).filter((url) => url !== undefined),
    config: absolute(parameters.get('config')),
    latents: absolute(parameters.get('latents')),
    family: parameters.get('family') ?? undefined,
    precision: precision === 'f16' || precision === 'f32' ? precision : 'auto',
    budget: budget > 0 && Number.isFinite(budget) ? budget : undefined,
  };
}

/**
 * An address as the page means it; the worker would take it from its own place.
 * @param {string | null} address
 * @returns {string | undefined} undefined for what is none
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
