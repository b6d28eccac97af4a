// @ts-check
// The program of the file that `wgvae memory --html` writes: shows the reports in it.

import { viewReports } from './view.js';

const data = document.querySelector('script[type="application/json"]')?.textContent ?? '[]';

document.querySelector('main')?.replaceChildren(...viewReports(JSON.parse(data)));
