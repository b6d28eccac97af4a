// @ts-check
// Memory reports side by side, as HTML: predictions, measurements, and the estimates of others.

import { impliedByPixels, peaksByFrames, peaksByPixels, predictedByMeasured } from './figures.js';
import { PUBLISHED_DEVICE, PUBLISHED_SOURCE } from './published.js';
import { ALL_RUNS, isExact, isOfRuns, rowsOf, runsName } from './rows.js';
import { adaptersTable, estimatesTable, formulasTable, measurementTables, publishedTable, ratiosTable } from './tables.js';
import { heading, link, paragraph } from './tags.js';

/** @typedef {import('./rows.js').Row} Row */

/**
 * Returns the elements that show `reports`, for a place of class `report`.
 * @param {import('./rows.js').Report[]} reports
 * @returns {HTMLElement[]}
 */
export function viewReports(reports) {
  const rows = rowsOf(reports);
  return [
    lead(rows),
    adaptersTable(reports),
    ...plots(
      'Memory against pixels',
      'Coloured marks show the peak of wgvae, weights included. Dashed lines are the estimates of other tools for the same pictures, and grey rings are the memory that PyTorch reserved on an RTX 4090. ' +
        "SD 1.5, SD3 and FLUX.1 have the same network except for the latents' channels, so their marks cover each other.",
      peaksByPixels(rows),
    ),
    ...plots(
      'Memory against frames',
      'Clips are decoded and encoded part by part. Each part needs its own memory and the state that it keeps for the next, so the length of a clip makes no difference.',
      peaksByFrames(rows),
    ),
    ...plots(
      'Predicted against measured',
      'The prediction is made before anything is allocated. wgvae counts each buffer as it is created: its count should lie on the line, to the byte. ' +
        "The driver's allocator hands out more, because of alignment, and reserves more, because its blocks are not full.",
      predictedByMeasured(rows),
    ),
    heading('h2', 'All measurements'),
    paragraph(
      'Memory in MiB, times in seconds. The last two columns of images are bytes per pixel and element, as counted and as reserved. ' +
        "The process's peak includes GPU memory on CPU drivers. Clips keep state between parts, on the GPU or in host memory.",
    ),
    ...measurementTables(rows),
    heading('h2', 'Reserve ratio by vendor and family'),
    paragraph('Memory that the allocator reserved from the driver, divided by the memory that it handed out: the mean over sizes, frames and budgets.'),
    ratiosTable(rows),
    ...plots(
      'Implied bytes per pixel and element',
      "All memory except the weights, divided by pixels and by bytes of an element. InvokeAI's formula uses one such constant; such a formula fits if this is flat.",
      impliedByPixels(rows),
    ),
    ...estimates(rows),
  ];
}

/**
 * Returns a section of plots, or nothing if there are none.
 * @param {string} title
 * @param {string} text
 * @param {HTMLElement[]} figures
 */
function plots(title, text, figures) {
  if (figures.length === 0) return [];
  const grid = Object.assign(document.createElement('div'), { className: 'plots' });
  grid.append(...figures);
  return [heading('h2', title), paragraph(text), grid];
}

/** @param {Row[]} rows */
function estimates(rows) {
  return [
    heading('h2', 'The estimates in use today'),
    paragraph('Formulas for a picture of H × W pixels with E bytes an element.'),
    formulasTable(),
    heading('h3', 'For the pictures measured here'),
    paragraph('Each estimate in MiB, with its ratio to the peak of wgvae in brackets.'),
    estimatesTable(rows),
    heading('h3', 'For pictures measured with PyTorch'),
    paragraph(`${PUBLISHED_DEVICE}: reserved memory, by `, link(PUBLISHED_SOURCE, "InvokeAI's investigation"), '.'),
    publishedTable(),
  ];
}

/** Returns a summary in a sentence. @param {Row[]} rows */
function lead(rows) {
  const measured = rows.filter((row) => row.measured);
  const counts = ALL_RUNS.flatMap((runs) => {
    const count = measured.filter((row) => isOfRuns(row, runs)).length;
    if (count === 0) return [];
    return [count === 1 ? `1 ${runs.operation}${runs.areClips ? ' of a clip' : ''}` : `${count} ${runsName(runs)}`];
  });
  const failed = rows.length - measured.length;
  const failures = failed > 0 ? ` ${failed} failed;` : '';
  const exact = rows.filter(isExact).length;
  const text = `${listed(counts) || 'Nothing'} measured, each in a process of its own;${failures} in ${exact} of ${measured.length} the measured peak equals the predicted one to the byte.`;
  return Object.assign(paragraph(text), { className: 'lead' });
}

/** Joins parts of a sentence, with "and" before the last. @param {string[]} parts */
function listed(parts) {
  return parts.length < 2 ? parts.join('') : `${parts.slice(0, -1).join(', ')} and ${parts[parts.length - 1]}`;
}
