// @ts-check
// Short names and manufacturers of adapters, the same in tables and legends.

/** @typedef {{ os: string, arch: string, cpus: number }} Machine */
/**
 * @typedef {{ name: string, backend: string, device_type: string, driver: string, pci_id: string }}
 * Adapter
 */

/** Manufacturers by their PCI vendor ids. @type {Map<string, string>} */
const VENDORS = new Map([
  ['10de', 'NVIDIA'],
  ['1002', 'AMD'],
  ['1022', 'AMD'],
  ['8086', 'Intel'],
  ['106b', 'Apple'],
  ['13b5', 'Arm'],
  ['5143', 'Qualcomm'],
  ['1414', 'Microsoft'],
  ['1ae0', 'Google'],
  ['10005', 'Mesa'],
]);

/** Returns the name of the manufacturer. @param {Adapter} adapter */
export function vendor({ pci_id }) {
  return VENDORS.get(String(pci_id).split(':')[0]) ?? 'unknown vendor';
}

/**
 * Chooses the short names of every report's adapters. An adapter of one machine has the same name
 * in all reports. If two adapters would share a name, the later one gets a number.
 * @param {{ machine: Machine, adapters: Adapter[] }[]} reports
 * @returns {string[][]}
 */
export function adapterLabels(reports) {
  /** @type {Map<string, string>} */
  const known = new Map();
  /** @type {Map<string, number>} */
  const counts = new Map();
  return reports.map(({ machine, adapters }) =>
    adapters.map((adapter) => {
      const own = JSON.stringify([machine, adapter]);
      const short = shortName(adapter);
      const count = (counts.get(short) ?? 0) + (known.has(own) ? 0 : 1);
      counts.set(short, count);
      const label = known.get(own) ?? (count === 1 ? short : `${short} #${count}`);
      known.set(own, label);
      return label;
    }),
  );
}

/**
 * Returns the name and driver of an adapter, without the details that drivers put in brackets.
 * @param {Adapter} adapter
 */
function shortName({ name, driver, backend }) {
  return [(name || 'GPU').split(' (')[0], driverVersion(driver || '') ?? backend].filter(Boolean).join(', ');
}

/**
 * Returns the first word of a driver's description that looks like a version, and the word before
 * it.
 * @param {string} driver
 */
export function driverVersion(driver) {
  const words = driver.split(' (')[0].split(' ');
  const at = words.findIndex((word) => /\d.*\.|\..*\d/.test(word));
  return at < 0 ? undefined : words.slice(Math.max(0, at - 1), at + 1).join(' ');
}
