// @ts-check
// What a device is of: on a machine with two GPUs the systems must not decode on different ones
// unnoticed.

/** @param {GPUDevice} device */
export function nameOf({ adapterInfo: { vendor, architecture, device, description } }) {
  return [vendor, architecture, device, description].filter(Boolean).join(' ');
}
