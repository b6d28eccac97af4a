// @ts-check
// Measurements of this page, as a file in the format of results/schema/memory-report.schema.json.

/** @typedef {import('./news.js').Outcome} Outcome */

/** Version of the format that this page writes, and the newest that it reads. */
export const VERSION = 2;

export class Own {
  version = '';
  /** Facts about each adapter as JSON. @type {string[]} */
  #adapters = [];
  /**
   * Measurements without their plans, which may be long.
   * @type {ReturnType<typeof measurement>[]}
   */
  #measurements = [];

  /** @param {Outcome} outcome */
  add(outcome) {
    const adapter = JSON.stringify(adapterFacts(outcome.info.adapter));
    if (!this.#adapters.includes(adapter)) this.#adapters.push(adapter);
    this.#measurements.push(measurement(outcome, this.#adapters.indexOf(adapter)));
  }

  file() {
    return new File([JSON.stringify(this.report(), undefined, 2), '\n'], `wgvae-memory-${os()}.json`, { type: 'application/json' });
  }

  report() {
    return {
      schema: 'wgvae-memory-report',
      version: VERSION,
      wgvae: this.version,
      // The module does not know the architecture of the machine, and browsers do not tell it.
      machine: { os: os(), arch: 'wasm32', cpus: navigator.hardwareConcurrency || 1 },
      adapters: this.#adapters.map((text) => JSON.parse(text)),
      measurements: this.#measurements,
    };
  }
}

/** @param {import('../src/index.js').AdapterInfo} adapter */
function adapterFacts({ name, backend, device_type, driver, pci_id, limits }) {
  return { name, backend, device_type, driver, pci_id: String(pci_id ?? ''), limits };
}

/**
 * @param {Outcome} outcome
 * @param {number} adapter
 */
function measurement({ operation, width, height, report, plan, info, budget, isDemo }, adapter) {
  return {
    adapter,
    model: isDemo ? 'demo' : info.model,
    weights: isDemo ? 'embedded' : 'file',
    operation,
    width,
    height,
    storage: info.storage,
    budget: budget ?? null,
    // The plan of a fallback is not known here; the plan of the first try does not belong to this
    // measurement.
    predicted: report.fallback_text ? null : predicted(plan),
    measured: {
      ledger_peak: report.measured_peak_bytes,
      allocator_allocated: null,
      allocator_reserved: null,
      peak_rss: null,
      load_seconds: info.load_seconds,
      prepare_seconds: report.compile_seconds,
      seconds: report.seconds,
    },
    error: null,
  };
}

/** @param {import('../src/index.js').Plan} plan */
function predicted(plan) {
  return {
    peak: plan.predicted_peak_bytes,
    weights: plan.weight_bytes,
    slots: plan.slot_bytes + plan.picture_bytes,
    parameters: plan.parameter_bytes,
    staging: plan.staging_bytes,
    host: plan.host_bytes,
    transferred: plan.transferred_bytes,
  };
}

/** Returns the name of the operating system as Rust spells it. */
function os() {
  const agent = navigator.userAgent;
  const known = [['Android', 'android'], ['Windows', 'windows'], ['iPhone', 'ios'], ['iPad', 'ios'], ['Mac OS', 'macos'], ['CrOS', 'chromeos'], ['Linux', 'linux']];
  return known.find(([mark]) => agent.includes(mark))?.[1] ?? 'unknown';
}
