// @ts-check
// Limits of devices for plans without a device.

import { kindOf, mismatch } from './errors.js';

/**
 * Limits that a device of the package's own takes from its adapter, instead of WebGPU's defaults.
 */
const OF_ADAPTERS = /** @type {const} */ ({
  max_storage_buffer_binding_size: 'maxStorageBufferBindingSize',
  max_buffer_size: 'maxBufferSize',
  min_uniform_buffer_offset_alignment: 'minUniformBufferOffsetAlignment',
});

/** True if the value may be limits. @param {unknown} value */
export function areLimits(value) {
  return typeof value === 'object' && value !== null;
}

/**
 * Returns the limits in the module's form. For an adapter, returns the limits that a device of the
 * package's own would have.
 * @param {NonNullable<import('./index.js').PlanForOptions['limits']>} limits
 */
export function limitsOf(limits) {
  if (!areLimits(limits) || !('features' in limits)) return limits;
  const { features, info, limits: offered } = /** @type {GPUAdapter} */ (limits);
  if (!info) throw mismatch('input', 'limits', 'a GPUAdapter, or limits as in AdapterInfo', kindOf(limits));
  const own = Object.entries(OF_ADAPTERS).map(([name, limit]) => [name, offered[limit]]);
  return {
    ...Object.fromEntries(own),
    shader_f16: features.has('shader-f16'),
    timestamp_query: features.has('timestamp-query'),
    // The package requests subgroups only on a CPU adapter.
    quads: Boolean(info.isFallbackAdapter) && features.has('subgroups') && info.subgroupMinSize >= 4,
    vendor: info.vendor,
    kind: info.isFallbackAdapter ? 'cpu' : 'gpu',
  };
}
