// @ts-check
// The package's public names. Their types and documentation are in index.d.ts.

export { cachedFiles, cacheUsage, clearCache, persistCache } from './cache.js';
export { WgvaeError } from './errors.js';
export { families, version } from './about.js';
export { hub } from './hub.js';
export { inspect } from './inspect.js';
export { planFor } from './plan-for.js';
export { preview } from './preview.js';
export { selftest } from './selftest.js';
export { isSupported } from './support.js';
export { tune } from './tune.js';
export { createDecoder, createEncoder, createVae } from './vae.js';
