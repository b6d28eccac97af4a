// @ts-check
// The page's worker: the package's, with its models, and beside it what takes long with files and
// pixels, or asks addresses that the page itself may not.

import '../src/worker-host.js';
import { Link } from '../src/link.js';
import { fetchFile } from './fetch-file.js';
import { framesOf, openFootage } from './footage.js';
import { axesOf } from './header.js';
import { shapeOfLatents } from './latents-shape.js';
import { openPicture } from './original.js';
import { compareFrames, comparePictures, compareWithOriginal } from './pixels.js';
import { kindOf, sortFiles } from './sort-files.js';

/** What the page may ask, see `ask.js`. */
const TASKS = { sortFiles, fetchFile, kindOf, axesOf, shapeOfLatents, openPicture, openFootage, framesOf, compareWithOriginal, compareFrames, comparePictures };

/** @typedef {typeof TASKS} Tasks */

self.addEventListener('message', ({ data }) => {
  const port = data.tasks;
  // Others are the package's.
  if (!(port instanceof MessagePort)) return;
  const link = new Link(port, { gives: true });
  for (const [name, task] of Object.entries(TASKS)) link.offer(name, task);
  port.start();
});
