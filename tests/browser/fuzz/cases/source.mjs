// @ts-check
// Files behind addresses: sources.js, http.js, stream.js, answers.js, read-ahead.js, cache.js,
// aside.js, temporary.js, files.js, retry.js.

import assert from 'node:assert/strict';

import { cachedFiles, cacheUsage, clearCache } from '../../../../web/src/cache.js';
import { Access, openSource } from '../../../../web/src/sources.js';
import { MemoryFolder } from '../folders.mjs';
import { FileServer, someManners } from '../file-server.mjs';
import { checkBytes, checkError } from '../outcome.mjs';
import { replace } from '../world.mjs';

/** @typedef {import('../world.mjs').World} World */
/** @typedef {import('../../../../web/src/sources.js').Source} Source */
/** @typedef {import('../../../../web/src/read-ahead.js').Range} Range */

const NOTICES = ['no-ranges', 'waiting', 'cache-full'];

/**
 * Opens one file a few times and reads from it, with all faults of its server.
 * @param {World} world
 */
export async function readsOfAFile(world) {
  const { random, clock } = world;
  const length = random.pick([0, 1, random.below(100), random.below(3000), random.below(20_000)]);
  const server = new FileServer(random, clock, { manners: someManners(random), faults: random.pick([0, 0, 0.05, 0.3]), length });
  replace('fetch', server.fetch);
  const keeps = random.chance(0.7);
  for (let visit = random.between(1, 3); visit > 0; visit -= 1) {
    await new Visit(world, server, keeps).run();
    // Nothing is in flight any more: the cache does not change now.
    await settled(world, server, new AbortController(), cacheUsage());
    await settled(world, server, new AbortController(), cachedFiles());
    checkCache(world.root, server);
    if (random.chance(0.3)) server.change();
  }
  if (random.chance(0.2)) await settled(world, server, new AbortController(), clearCache());
}

/** One caller, from the opening of the file to its release. */
class Visit {
  #world;
  #server;
  #controller = new AbortController();
  #reason;
  /** True if an abort, by the caller or by a release, may end reads. */
  #mayAbort = false;
  /** Index of the first version that may have been opened. */
  #first;

  /** @param {World} world @param {FileServer} server @param {boolean} keeps */
  constructor(world, server, keeps) {
    this.#world = world;
    this.#server = server;
    this.#first = server.versions.length - 1;
    const { random } = world;
    this.#reason = random.pick([undefined, 'enough', new Error('enough'), { enough: true }]);
    const notify = (/** @type {{ code: string, message: string }} */ { code }) => assert.ok(NOTICES.includes(code), `the notice ${code}`);
    this.access = new Access(this.#controller.signal, notify, keeps);
  }

  async run() {
    const { random, clock } = this.#world;
    if (random.chance(0.15)) clock.wait(random.below(20_000)).then(() => this.#abort());
    if (random.chance(0.1)) clock.wait(random.below(10_000)).then(() => this.#server.change());
    const headBytes = random.pick([1, 16, 500, 1000, 65_536]);
    const source = await this.#outcome(openSource('file.bin', this.access, { what: 'model', headBytes }));
    if (!source) return;
    assert.ok(this.#versions().some((bytes) => bytes.length === source.length) || this.#wasToldWrong(), `a length of ${source.length}`);
    for (let turn = random.between(1, 4); turn > 0; turn -= 1) await this.#turn(source);
    source.release?.();
    await clock.runOut();
  }

  /** @param {Source} source */
  async #turn(source) {
    const { random } = this.#world;
    const ranges = someRanges(random, source.length);
    if (random.chance(0.2)) await this.#checkDownload(source, ranges);
    if (random.chance(0.7)) source.expect?.(ranges);
    if (random.chance(0.5)) {
      for (const range of ranges) await this.#read(source, range);
    } else {
      const reads = ranges.map((range) => this.#read(source, range));
      if (random.chance(0.2)) this.#release(source);
      await Promise.all(reads);
    }
    if (random.chance(0.3)) this.#release(source);
    if (random.chance(0.1)) this.#server.change();
  }

  /**
   * Checks that a download is at most the file, and that counting does not stop the reads.
   * @param {Source} source
   * @param {Range[]} ranges
   */
  async #checkDownload(source, ranges) {
    const bytes = await this.#outcome(source.toDownload?.(ranges) ?? Promise.resolve(0));
    const most = ranges.reduce((sum, { length }) => sum + length, source.length);
    assert.ok(bytes === undefined || (bytes >= 0 && bytes <= most), `${bytes} bytes to download of ${source.length}`);
  }

  /** @param {Source} source */
  #release(source) {
    this.#mayAbort = true;
    source.release?.();
  }

  #abort() {
    this.#mayAbort = true;
    this.#controller.abort(this.#reason);
  }

  /** @param {Source} source @param {Range} range */
  async #read(source, { offset, length }) {
    const bytes = await this.#outcome(source.read(offset, length));
    if (bytes) checkBytes(bytes, offset, length, this.#versions(), 'read');
  }

  /**
   * Returns the versions that may have been opened: the current one, or any since. A later version
   * is noticed, except one that came before the first answer.
   */
  #versions() {
    return this.#server.versions.slice(this.#first).map(({ bytes }) => bytes);
  }

  /** True if the server may have named a wrong length that nothing else contradicted. */
  #wasToldWrong() {
    return this.#server.faults > 0;
  }

  /**
   * Returns the result; undefined for a rejection. Fails if the promise never settles.
   * @template T
   * @param {Promise<T>} promise
   */
  async #outcome(promise) {
    return settled(this.#world, this.#server, this.#controller, promise, () => (this.#mayAbort ? [this.#controller.signal.reason] : []));
  }
}

/**
 * @template T
 * @param {World} world
 * @param {FileServer} server
 * @param {AbortController} controller ends requests that the server never answers
 * @param {Promise<T>} promise
 * @param {() => unknown[]} [reasons]
 * @returns {Promise<T | undefined>}
 */
async function settled(world, server, controller, promise, reasons = () => []) {
  const found = promise.then((value) => ({ value }), (error) => ({ error }));
  if (!(await world.clock.runUntil(found))) {
    assert.ok(server.hasStalled, 'an operation never ends, though every request was answered');
    controller.abort();
    assert.ok(await world.clock.runUntil(found), 'an operation never ends, though it was aborted');
  }
  const outcome = await found;
  if ('value' in outcome) return outcome.value;
  // A disk that refuses to be cleared reports its own error.
  if (world.disk.faults > 0 && outcome.error instanceof DOMException && reasons().length === 0 && !controller.signal.aborted) return undefined;
  checkError(outcome.error, controller.signal.aborted ? [controller.signal.reason] : reasons());
  return undefined;
}

/**
 * Checks that every entry belongs to the version that its folder names.
 * @param {MemoryFolder} root
 * @param {FileServer} server
 */
function checkCache(root, server) {
  for (const folder of foldersIn(folderIn(folderIn(root, 'wgvae'), 'cache'))) {
    const identity = parsed(folder.entries.get('identity.json'));
    for (const [name, entry] of folder.entries) {
      const place = /^(\d+)-(\d+)$/.exec(name);
      if (!place || !identity) continue;
      const [offset, length] = [Number(place[1]), Number(place[2])];
      const content = /** @type {any} */ (entry).content;
      // Shorter files are torn, and never read.
      if (content.length !== length) continue;
      const named = server.versions.filter(({ etag, modified }) => [etag, modified].includes(identity.validator));
      checkBytes(content, offset, length, named.map(({ bytes }) => bytes), `kept as ${name} of ${identity.validator}`);
    }
  }
}

/**
 * Returns all folders below one.
 * @param {MemoryFolder | undefined} folder
 * @returns {MemoryFolder[]}
 */
function foldersIn(folder) {
  const inside = [...(folder?.entries.values() ?? [])].filter((entry) => entry instanceof MemoryFolder);
  return inside.flatMap((entry) => [entry, ...foldersIn(entry)]);
}

/** @param {any} handle */
function parsed(handle) {
  try {
    return JSON.parse(new TextDecoder().decode(handle.content));
  } catch {
    return undefined;
  }
}

/** @param {MemoryFolder | undefined} folder @param {string} name */
function folderIn(folder, name) {
  const entry = folder?.entries.get(name);
  return entry instanceof MemoryFolder ? entry : undefined;
}

/**
 * Returns random ranges of a file, usual and unusual ones.
 * @param {import('../random.mjs').Random} random
 * @param {number} length
 * @returns {Range[]}
 */
function someRanges(random, length) {
  const ranges = Array.from({ length: random.between(1, 8) }, () => {
    const offset = random.below(length + 1);
    return { offset, length: random.pick([1, random.below(50), random.below(length + 1)]) };
  });
  const inside = ranges.map(({ offset, length: wanted }) => ({ offset, length: Math.min(wanted, length - offset) }));
  return random.chance(0.6) ? inside.sort((a, b) => a.offset - b.offset) : inside;
}
