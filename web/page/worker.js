// @ts-check
// The page's worker: the package's worker with its models, and tasks that take long with files and
// pixels, or that fetch addresses which the page itself may not.

import '../src/worker-host.js';
import { Link } from '../src/link.js';
import { startWasm } from '../src/wasm.js';
import { fetchFile } from './fetch-file.js';
import { framesOf, openFootage } from './footage.js';
import { axesOf } from './header.js';
import { shapeOfLatents } from './latents-shape.js';
import { openPicture } from './original.js';
import { compareFrames, comparePictures, compareWithOriginal } from './pixels.js';
import { kindOf, sortFiles } from './sort-files.js';

/** Tasks that the page may request, see `ask.js`. */
const TASKS = { sortFiles, fetchFile, kindOf, axesOf, shapeOfLatents, openPicture, openFootage, framesOf, compareWithOriginal, compareFrames, comparePictures };

/** @typedef {typeof TASKS} Tasks */

// The module comes while the page's own script is still on its way, and not before the page is
// painted. Whoever needs it learns of a failure.
startWasm().catch(() => {});

self.addEventListener('message', ({ data }) => {
  const port = data.tasks;
  // Other messages belong to the package.
  if (!(port instanceof MessagePort)) return;
  const link = new Link(port, { gives: true });
  for (const [name, task] of Object.entries(TASKS)) link.offer(name, task);
  port.start();
  // Tells that this script runs.
  port.postMessage({ id: 0 });
});
