// @ts-check
// Counts the page's GPU memory independently of the crate's ledger, by calls of the browser's API.

/** Live buffers of each device. @type {Map<GPUDevice, Map<GPUBuffer, number>>} */
const devices = new Map();
/** @type {WeakMap<GPUBuffer, GPUDevice>} */
const owners = new WeakMap();
let peak = 0;
/** Contexts of canvases that have textures. @type {Set<GPUCanvasContext>} */
const configured = new Set();
let configurations = 0;

/** Returns the number of devices that were requested and not destroyed. */
export function liveDevices() {
  return devices.size;
}

/** Returns the bytes of buffers that were created and not destroyed, on all devices. */
export function liveBytes() {
  let sum = 0;
  for (const buffers of devices.values()) for (const size of buffers.values()) sum += size;
  return sum;
}

/** Returns the most bytes at once since the last call. */
export function takePeak() {
  const most = peak;
  peak = liveBytes();
  return most;
}

/**
 * Returns the number of canvases that were configured and not released. The browser keeps textures
 * for each, which no count of buffers includes.
 */
export function liveCanvases() {
  return configured.size;
}

/** Returns how often canvases were configured since the last call. */
export function takeConfigurations() {
  const count = configurations;
  configurations = 0;
  return count;
}

/**
 * Runs `after` after the method `name` of every object of `type`.
 * @param {any} type
 * @param {string} name
 * @param {(self: any, result: any) => void} after
 */
function watch(type, name, after) {
  const original = type.prototype[name];
  type.prototype[name] = function (/** @type {unknown[]} */ ...parameters) {
    const result = original.apply(this, parameters);
    after(this, result);
    return result;
  };
}

/** Begins to count. Call it once, before anything requests a device. */
export function startWatching() {
  watch(GPUAdapter, 'requestDevice', (_, promise) => {
    promise.then(
      (/** @type {GPUDevice} */ device) => {
        devices.set(device, new Map());
        // After any loss, its memory is gone.
        device.lost.then(() => devices.delete(device));
      },
      () => {},
    );
  });
  watch(GPUDevice, 'createBuffer', (device, buffer) => {
    devices.get(device)?.set(buffer, buffer.size);
    owners.set(buffer, device);
    peak = Math.max(peak, liveBytes());
  });
  watch(GPUBuffer, 'destroy', (buffer) => {
    const device = owners.get(buffer);
    if (device) devices.get(device)?.delete(buffer);
  });
  watch(GPUDevice, 'destroy', (device) => devices.delete(device));
  watch(GPUCanvasContext, 'configure', (context) => {
    configured.add(context);
    configurations += 1;
  });
  watch(GPUCanvasContext, 'unconfigure', (context) => configured.delete(context));
}
