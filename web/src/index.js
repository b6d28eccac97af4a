// @ts-check
// The package's public names. Their types and documentation are in index.d.ts.

export { cacheUsage, clearCache } from './cache.js';
export { WgvaeError } from './errors.js';
export { families, version } from './about.js';
export { createDecoder, createEncoder, createVae } from './vae.js';
