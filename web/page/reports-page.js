// @ts-check
// The page of memory reports: reads files and shows them.

import { acceptDrops } from './drop.js';
import { element } from './elements.js';
import { takeFiles } from './picker.js';
import { Reports } from './reports.js';

const reports = new Reports();

reports.showExample('results/lavapipe-26.2.json');

takeFiles('reports-file', (files) => reports.add(files));
acceptDrops(element('drop'), (files) => reports.add(files), (error) => reports.fail(`dropped files cannot be read: ${error instanceof Error ? error.message : error}`));
