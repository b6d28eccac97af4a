// @ts-check
// Names of adapters: on a machine with two GPUs, systems must not decode on different ones
// unnoticed.

/** @param {GPUDevice} device */
export function nameOf({ adapterInfo: { vendor, architecture, device, description } }) {
  return [vendor, architecture, device, description].filter(Boolean).join(' ');
}
