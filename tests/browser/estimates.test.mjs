// @ts-check
// The page's estimates equal the command line's. No browser is needed.

import assert from 'node:assert/strict';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { it } from 'node:test';

import { ESTIMATES } from '../../web/page/estimates.js';
import { writeReport } from './native.mjs';

it('estimates what the command line writes into its report', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'wgvae-report-'));
  try {
    const file = join(folder, 'report.html');
    await writeReport(file);
    const rows = estimatesOfSd15(await readFile(file, 'utf8'));
    // Both element sizes, and more than one picture size.
    assert.equal(new Set(rows.map(({ stored }) => stored === 'f32')).size, 2);
    assert.ok(new Set(rows.map(({ side }) => side)).size > 1);
    for (const { side, stored, estimates } of rows) {
      for (const { name, bytes } of ESTIMATES) {
        const mib = bytes(side, stored === 'f32' ? 4 : 2) / 2 ** 20;
        assert.equal(mib.toFixed(1), estimates.get(name), `${name} for ${side} pixels, ${stored}`);
      }
    }
  } finally {
    await rm(folder, { recursive: true });
  }
});

/**
 * Returns the rows of SD 1.5 in the table of estimates: MiB by the estimate's name.
 * @param {string} html
 */
function estimatesOfSd15(html) {
  const tables = html.split('<table>').filter((table) => table.includes('stored as') && table.includes('InvokeAI, in use'));
  assert.equal(tables.length, 1, 'one table of estimates for the pictures that were measured');
  const [head, ...rows] = tables[0].split('<tr>').slice(1).map((row) => [...row.matchAll(/<t[hd][^>]*>(.*?)<\/t[hd]>/g)].map((match) => match[1]));
  const named = rows.map((row) => new Map(row.map((cell, index) => [head[index], cell])));
  // The page estimates only decodes.
  return named.filter((row) => row.get('model') === 'sd15' && row.get('direction') === 'decode').map((row) => ({
    side: Number(row.get('size')?.split('x')[0]),
    stored: row.get('stored as'),
    // The number in brackets is a ratio.
    estimates: new Map([...row].map(([name, cell]) => [name, cell.split(' ')[0]])),
  }));
}
