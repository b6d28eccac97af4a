// @ts-check
// Counts the page's GPU memory apart from the crate's own ledger: by what passes through the
// browser's API.

/** Live buffers of each device. @type {Map<GPUDevice, Map<GPUBuffer, number>>} */
const devices = new Map();
/** @type {WeakMap<GPUBuffer, GPUDevice>} */
const owners = new WeakMap();
let peak = 0;
/** Contexts of canvases that have textures. @type {Set<GPUCanvasContext>} */
const configured = new Set();
let configurations = 0;

/** Devices that have been asked for and not been destroyed. */
export function liveDevices() {
  return devices.size;
}

/** Bytes of buffers that have been created and not been destroyed, of all devices. */
export function liveBytes() {
  let sum = 0;
  for (const buffers of devices.values()) for (const size of buffers.values()) sum += size;
  return sum;
}

/** The most bytes at once since the last call. */
export function takePeak() {
  const most = peak;
  peak = liveBytes();
  return most;
}

/**
 * Canvases that have been configured and not been let go. The browser keeps textures for each,
 * which are in no count of buffers.
 */
export function liveCanvases() {
  return configured.size;
}

/** How often canvases were configured since the last call. */
export function takeConfigurations() {
  const count = configurations;
  configurations = 0;
  return count;
}

/**
 * Runs `after` behind the method `name` of every object of `type`.
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

/** Begins to count. Once, before anything asks for a device. */
export function startWatching() {
  watch(GPUAdapter, 'requestDevice', (_, promise) => {
    promise.then(
      (/** @type {GPUDevice} */ device) => {
        devices.set(device, new Map());
        // However it is lost: its memory is gone.
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
