// @ts-check
// The numbers of memory reports, without a browser: estimates of other tools against their authors'
// numbers, and the names of adapters.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';

import { adapterLabels, driverVersion, vendor } from '../../crates/memory-report/src/view/adapters.js';
import { ESTIMATORS, im2col, INVOKE_AI } from '../../crates/memory-report/src/view/estimates.js';
import { publishedBytes, publishedConstant, RESERVE_RATIOS, RTX_4090 } from '../../crates/memory-report/src/view/published.js';
import { impliedConstant, reserveRatio, rowsOf } from '../../crates/memory-report/src/view/rows.js';

const MIB = 2 ** 20;

/**
 * @param {string} name
 * @param {string} model
 * @param {string} operation
 * @param {number} side
 * @param {number} elementBytes
 */
function estimate(name, model, operation, side, elementBytes) {
  const estimator = ESTIMATORS.find((one) => one.name === name);
  assert.ok(estimator, name);
  return estimator.bytes({ model, operation, width: side, height: side, elementBytes });
}

describe('estimates of other tools', () => {
  // The numbers that InvokeAI's pull request 7674 prints as "Estimated", in MB, which are MiB.
  it('are what InvokeAI says that it estimates', () => {
    for (const [model, side, elementBytes, mib] of /** @type {[string, number, number, number][]} */ ([['sd15', 512, 4, 2450], ['sdxl', 1024, 2, 4400], ['sdxl', 1024, 4, 9050]])) {
      assert.equal(estimate(INVOKE_AI, model, 'decode', side, elementBytes), mib * MIB, `${model} ${side}`);
    }
    // "Encoding uses ~45% the working memory as decoding"; the code uses a half.
    assert.equal(estimate(INVOKE_AI, 'flux1', 'encode', 1024, 2), 2200 * MIB);
    assert.equal(estimate('InvokeAI, measured', 'flux1', 'encode', 1024, 2), 1900 * MIB);
    assert.equal(estimate(INVOKE_AI, 'no such model', 'decode', 512, 2), undefined);
  });

  // 2136 is the 95th percentile for FLUX and SDXL, and 2200 is meant to be above everything.
  it('agree with the published measurements within their spread', () => {
    for (const row of RTX_4090) {
      const ratio = (/** @type {string} */ name) => (estimate(name, row.model, row.operation, row.side, 2) ?? NaN) / publishedBytes(row);
      const [inUse, measured] = [ratio(INVOKE_AI), ratio('InvokeAI, measured')];
      // Encoding: 1100 is a half. The measured 899 are 0.42 of decoding; 950 was rounded up.
      const bounds = row.operation === 'decode' ? { inUse: [1, 1.09], measured: [0.98, 1.05] } : { inUse: [1.2, 1.25], measured: [1.03, 1.07] };
      assert.ok(inUse >= bounds.inUse[0] && inUse <= bounds.inUse[1], `${JSON.stringify(row)}: ${inUse}`);
      assert.ok(measured >= bounds.measured[0] && measured <= bounds.measured[1], `${JSON.stringify(row)}: ${measured}`);
    }
    const implied = (/** @type {string} */ model, /** @type {number} */ side) => RTX_4090.filter((row) => row.model === model && row.side === side).map(publishedConstant)[0];
    assert.deepEqual([implied('flux1', 512), implied('sd15', 1024), implied('sdxl', 1024)], [2136, 2113, 2137]);
    assert.ok(RESERVE_RATIOS.every(({ ratio }) => ratio >= 1 && ratio < 2));
  });

  // By hand: 1.2 times (2 * 83,653,863 parameters + 64 * 64 * 4 * 2 + 4 * 512 * 512 * 3 * 2).
  it('of the calculator add latents and four outputs', () => {
    assert.equal(estimate('SD1.5 VRAM calculator', 'sd15', 'decode', 512, 2), 208_358_340);
    assert.equal(estimate('SD1.5 VRAM calculator', 'flux1', 'decode', 512, 2), undefined);
  });

  // The MLX analysis has 7.6 GiB in bf16 and 15.2 GiB in f32 for 128 channels at 1536x2304.
  it('of im2col are what its analysis says', () => {
    const gib = (/** @type {number} */ elementBytes) => (im2col({ width: 1536, height: 2304, elementBytes }, 128) / 2 ** 30).toFixed(1);
    assert.deepEqual([gib(2), gib(4)], ['7.6', '15.2']);
    // 256 channels at 1024x1024, f16: 2,415,919,104 elements. An encoder has half as many.
    assert.equal(estimate('im2col workspace', 'sdxl', 'decode', 1024, 2), 2 * 2_415_919_104);
    assert.equal(estimate('im2col workspace', 'sdxl', 'encode', 1024, 2), 2_415_919_104);
  });
});

describe('rows of a report', () => {
  const machine = { os: 'linux', arch: 'x86_64', cpus: 2 };
  const adapter = (/** @type {string} */ driver) => ({ name: 'card (rev 2)', backend: 'Vulkan', device_type: 'DiscreteGpu', driver, pci_id: '10de:1234' });
  const predicted = { peak: 1100, weights: 100, host: 0 };
  const measured = { ledger_peak: 1100, allocator_allocated: 1200, allocator_reserved: 1800, peak_rss: null, load_seconds: 0.5, prepare_seconds: 0.25, seconds: 1.5 };
  const image = { adapter: 0, model: 'sd15', operation: 'decode', width: 512, height: 256, storage: 'f16', budget: null, predicted, measured, error: null };

  it('have ratios, of which clips and failed runs lack some', () => {
    const clip = { ...image, frames: 17 };
    const failed = { ...image, measured: null, error: 'out of memory' };
    const all = rowsOf([{ wgvae: '0.1.0', machine, adapters: [adapter('')], measurements: [image, { ...image, frames: 1 }, clip, failed, { ...image, storage: 'f32' }] }]);
    const counted = all.map((row) => impliedConstant(row, row.measured?.ledger_peak));
    // A number per pixel would mean less, the longer the clip is.
    assert.deepEqual(counted, [1000 / 262_144, 1000 / 262_144, undefined, undefined, 1000 / 524_288]);
    assert.equal(impliedConstant(all[0], measured.allocator_reserved), 1700 / 262_144);
    assert.deepEqual(all.map(reserveRatio), [1.5, 1.5, 1.5, undefined, 1.5]);
    assert.equal(all[0].vendor, 'NVIDIA');
    assert.equal(vendor({ ...adapter(''), pci_id: '' }), 'unknown vendor');
  });

  it('call one adapter the same in all reports, and two differently', () => {
    const report = (/** @type {number} */ cpus, /** @type {string[]} */ drivers) => ({ machine: { ...machine, cpus }, adapters: drivers.map(adapter) });
    const labels = adapterLabels([report(2, ['NVIDIA 1.2', 'NVIDIA 3.4']), report(4, ['NVIDIA 1.2']), report(2, ['NVIDIA 1.2'])]);
    assert.deepEqual(labels, [['card, NVIDIA 1.2', 'card, NVIDIA 3.4'], ['card, NVIDIA 1.2 #2'], ['card, NVIDIA 1.2']]);
  });

  it('name drivers by their version', () => {
    for (const [driver, expected] of [['llvmpipe Mesa 22.3.6 (LLVM 15.0.6)', 'Mesa 22.3.6'], ['NVIDIA 580.65.06', 'NVIDIA 580.65.06'], ['31.0.101.5186', '31.0.101.5186'], ['Metal', undefined], ['', undefined]]) {
      assert.equal(driverVersion(driver ?? ''), expected, driver);
    }
  });
});
