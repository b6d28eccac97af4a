// @ts-check
// A web server on this machine only. It serves folders like a good server, and single addresses as
// badly as a test asks. It records every request and the bytes sent.

import { once } from 'node:events';
import { createReadStream } from 'node:fs';
import { readFile, stat } from 'node:fs/promises';
import { createServer } from 'node:http';
import { extname, join, normalize, sep } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { gzipSync } from 'node:zlib';

/** @type {Record<string, string>} */
const TYPES = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript',
  '.mjs': 'text/javascript',
  '.css': 'text/css',
  '.json': 'application/json',
  '.svg': 'image/svg+xml',
  '.png': 'image/png',
  '.jpg': 'image/jpeg',
  '.wasm': 'application/wasm',
  '.webmanifest': 'application/manifest+json',
};

/**
 * Failure of a request: a status, an invalid answer, or a connection that breaks in the middle of
 * the content.
 * @typedef {number | 'nonsense' | 'cut'} Failure
 */

/**
 * An answer that browsers reject and do not request again, as they do when a connection ends
 * without an answer.
 */
const NONSENSE = 'HTTP/1.1 206 Partial Content\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n';

/**
 * Behaviour of an address. By default it is a file of a good server.
 * @typedef {object} Behaviour
 * @property {string} [file] the content: a file's path
 * @property {Uint8Array | string} [bytes] or the content itself
 * @property {number} [status] answer with this status and no content
 * @property {string} [token] required token: 401 without any, 403 with another
 * @property {string} [location] target of a redirect
 * @property {string} [type] Content-Type
 * @property {boolean} [ranges] false: no HTTP Range, and no header about it
 * @property {boolean} [chunked] true: no ranges, and no Content-Length either
 * @property {boolean} [gzip] true: no ranges, compressed whatever the browser asked for, with the
 * compressed length
 * @property {Record<string, string>} [headers] additional headers, also of errors
 * @property {string | null | ((request: number) => string | null)} [etag] null: none; a function
 * takes the number of the request, from 0
 * @property {number} [claim] Content-Length to claim, whatever is sent
 * @property {number} [stopAfter] bytes of an answer after which the connection breaks
 * @property {number} [stopFrom] first request that breaks, from 0
 * @property {(request: number) => Failure | undefined} [fails] returns the failure of a request,
 * numbered from 0
 * @property {number} [shortBy] bytes missing at the end of a range, as its headers say
 * @property {number} [claimFrom] first byte that Content-Range claims, whatever is sent
 * @property {number} [delay] milliseconds before each answer
 * @property {number} [pace] milliseconds before each 64 KiB
 * @property {number} [holdAfter] bytes after which the server waits until the client hangs up; a
 * client that stays gets the rest in the end
 */

/**
 * A recorded request. `path` is decoded, `target` as received; `isOver`: true when nothing more
 * will be sent, because all was sent or the client is gone.
 * @typedef {{ path: string, target: string, method: string, range: string | undefined,
 * authorization: string | undefined, status: number, bytes: number, isOver: boolean }} Seen
 */

/**
 * Time after which a client counts as one that stays, milliseconds. It measures no speed: it only
 * ends endless waits.
 */
const HELD = 120_000;

/**
 * @param {object} options
 * @param {string} options.root folder that `/` serves
 * @param {Record<string, string>} [options.mounts] other folders, by their path prefix: `{
 * '/models/': 'some/folder' }`
 * @param {boolean} [options.isolate] cross-origin isolation (COOP, COEP), for wasm with threads
 * @param {boolean} [options.cors] true to let pages of other origins read
 */
export async function startServer({ root, mounts = {}, isolate = false, cors = false }) {
  /** @type {Map<string, Behaviour>} */
  const routes = new Map();
  /** @type {Seen[]} */
  const seen = [];
  const headers = { ...(isolate ? ISOLATION : {}), ...(cors ? CORS : {}) };
  const server = createServer(async (request, response) => {
    const path = decodeURIComponent(new URL(request.url ?? '/', 'http://localhost').pathname);
    const { range, authorization } = request.headers;
    const entry = { path, target: request.url ?? '/', method: request.method ?? 'GET', range, authorization, status: 0, bytes: 0, isOver: false };
    const number = seen.filter((earlier) => earlier.path === path).length;
    seen.push(entry);
    const behaviour = routes.get(path) ?? { file: locate(path, root, mounts) };
    await answer(behaviour, number, request, response, headers, entry).catch((error) => {
      // A client that leaves is no error of the server.
      if (!response.headersSent && !response.destroyed) response.writeHead(500).end(String(error));
      response.destroy();
    });
    entry.isOver = true;
  });
  // 0: idle connections stay open. If the server ended one just as the browser sends a request,
  // that request would fail.
  server.keepAliveTimeout = 0;
  await new Promise((resolve) => server.listen(0, '127.0.0.1', () => resolve(undefined)));
  const { port } = /** @type {import('node:net').AddressInfo} */ (server.address());
  const origin = `http://127.0.0.1:${port}`;
  return {
    origin,
    /** @param {string} path */
    url: (path) => origin + path,
    /** Returns the requests for `path`, or all requests. @param {string} [path] */
    seen: (path) => seen.filter((entry) => path === undefined || entry.path === path),
    /** Returns the bytes of content sent for `path`. @param {string} path */
    bytes: (path) => seen.filter((entry) => entry.path === path).reduce((sum, { bytes }) => sum + bytes, 0),
    /** Forgets the requests for `path`. @param {string} path */
    forget: (path) => {
      const kept = seen.filter((entry) => entry.path !== path);
      seen.splice(0, seen.length, ...kept);
    },
    /**
     * Sets the behaviour of `path`.
     * @param {string} path
     * @param {Behaviour} behaviour
     */
    route: (path, behaviour) => {
      routes.set(path, behaviour);
      return origin + path;
    },
    /** Makes `path` a normal file again. @param {string} path */
    unroute: (path) => routes.delete(path),
    close: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/** @typedef {Awaited<ReturnType<typeof startServer>>} Server */

const ISOLATION = {
  'Cross-Origin-Opener-Policy': 'same-origin',
  'Cross-Origin-Embedder-Policy': 'require-corp',
  'Cross-Origin-Resource-Policy': 'cross-origin',
};

const CORS = {
  'Access-Control-Allow-Origin': '*',
  'Access-Control-Allow-Headers': 'Authorization, Range',
  'Access-Control-Expose-Headers': 'Content-Range, ETag, Last-Modified',
};

/**
 * Returns the file of an address, never one outside the served folders.
 * @param {string} path
 * @param {string} root
 * @param {Record<string, string>} mounts
 */
function locate(path, root, mounts) {
  const mount = Object.keys(mounts).find((prefix) => path.startsWith(prefix));
  const [folder, rest] = mount ? [mounts[mount], path.slice(mount.length)] : [root, path];
  const file = normalize(join(folder, rest.endsWith('/') || rest === '' ? `${rest}index.html` : rest));
  return file.startsWith(normalize(folder + sep)) ? file : undefined;
}

/**
 * @param {Behaviour} behaviour
 * @param {number} number
 * @param {import('node:http').IncomingMessage} request
 * @param {import('node:http').ServerResponse} response
 * @param {Record<string, string>} common
 * @param {Seen} entry
 */
async function answer(behaviour, number, request, response, common, entry) {
  if (behaviour.delay) await sleep(behaviour.delay);
  const failure = behaviour.fails?.(number);
  if (failure === 'nonsense') {
    request.socket.end(NONSENSE);
    return;
  }
  if (failure === 'cut') behaviour = { ...behaviour, stopAfter: 1000 };
  else if (failure) behaviour = { ...behaviour, status: failure, location: undefined };
  const { token } = behaviour;
  // A CORS preflight carries no token.
  if (token && request.method !== 'OPTIONS' && entry.authorization !== `Bearer ${token}`) behaviour = { ...behaviour, status: entry.authorization ? 403 : 401, location: undefined };
  for (const [name, value] of Object.entries(common)) response.setHeader(name, value);
  response.setHeader('Cache-Control', 'no-cache');
  for (const [name, value] of Object.entries(behaviour.headers ?? {})) response.setHeader(name, value);
  if (behaviour.location && request.method !== 'OPTIONS') {
    entry.status = 302;
    response.writeHead(302, { Location: behaviour.location }).end();
    return;
  }
  const content = request.method === 'OPTIONS' ? undefined : await open(behaviour);
  if (behaviour.gzip) response.setHeader('Content-Encoding', 'gzip');
  if (!content || behaviour.status) {
    entry.status = behaviour.status ?? (request.method === 'OPTIONS' ? 204 : 404);
    response.writeHead(entry.status).end();
    return;
  }
  const etag = etagOf(behaviour, content, number);
  if (etag) response.setHeader('ETag', etag);
  const type = behaviour.type ?? TYPES[extname(behaviour.file ?? entry.path)] ?? 'application/octet-stream';
  response.setHeader('Content-Type', type);
  const hasRanges = behaviour.ranges !== false;
  if (hasRanges) response.setHeader('Accept-Ranges', 'bytes');
  const ifRange = request.headers['if-range'];
  const range = hasRanges && (!ifRange || ifRange === etag) ? parseRange(request.headers.range, content.length) : undefined;
  if (range === 'unsatisfiable') {
    entry.status = 416;
    response.writeHead(416, { 'Content-Range': `bytes */${content.length}` }).end();
    return;
  }
  const part = range ?? { first: 0, last: content.length - 1 };
  const end = part.last + 1 - (range ? (behaviour.shortBy ?? 0) : 0);
  entry.status = range ? 206 : 200;
  if (range) response.setHeader('Content-Range', `bytes ${behaviour.claimFrom ?? part.first}-${part.last}/${content.length}`);
  if (!behaviour.chunked) response.setHeader('Content-Length', behaviour.claim ?? Math.max(0, end - part.first));
  // A connection that will break must not be reused for the next request: the browser would repeat
  // that request by itself, and the first request of a test would count twice.
  if (isBroken(behaviour, number)) response.setHeader('Connection', 'close');
  response.writeHead(entry.status);
  if (request.method === 'HEAD') response.end();
  else await send(content.read(part.first, end), { ...behaviour, number }, response, entry);
}

/**
 * True if the connection breaks after this answer: it stops half way, or has another length than it
 * claims.
 * @param {Behaviour} behaviour
 * @param {number} number
 */
function isBroken({ stopAfter, stopFrom = 0, claim }, number) {
  return claim !== undefined || (stopAfter !== undefined && number >= stopFrom);
}

/**
 * @param {AsyncIterable<Uint8Array>} chunks
 * @param {Behaviour & { number: number }} behaviour
 * @param {import('node:http').ServerResponse} response
 * @param {Seen} entry
 */
async function send(chunks, { number, pace, holdAfter = Infinity, ...behaviour }, response, entry) {
  const broken = isBroken(behaviour, number);
  const most = broken ? (behaviour.stopAfter ?? Infinity) : Infinity;
  async function* paced() {
    for await (const chunk of chunks) {
      if (pace) await sleep(pace);
      if (entry.bytes >= holdAfter && (await hungUp(response))) return;
      const rest = chunk.subarray(0, Math.max(0, most - entry.bytes));
      entry.bytes += rest.length;
      yield rest;
      if (entry.bytes >= most) break;
    }
  }
  if (!broken) return pipeline(Readable.from(paced()), response);
  for await (const chunk of paced()) await new Promise((resolve) => response.write(chunk, resolve));
  // Lets the written bytes go out before the connection breaks.
  await sleep(50);
  response.destroy();
}

/**
 * Waits until the client is gone, and returns true. Returns false if it stays.
 * @param {import('node:http').ServerResponse} response
 */
async function hungUp(response) {
  if (!response.destroyed) await once(response, 'close', { signal: AbortSignal.timeout(HELD) }).catch(() => {});
  return response.destroyed;
}

/**
 * @param {Behaviour} behaviour
 * @returns {Promise<{ length: number, tag: string, read(first: number, end: number):
 * AsyncIterable<Uint8Array> } | undefined>}
 */
async function open({ file, bytes, gzip }) {
  if (gzip) return open({ bytes: gzipSync(bytes ?? (await readFile(/** @type {string} */ (file)))) });
  if (bytes !== undefined) {
    const buffer = Buffer.from(bytes);
    return { length: buffer.length, tag: `"${buffer.length}"`, read: (first, end) => pieces(buffer.subarray(first, end)) };
  }
  const found = file === undefined ? undefined : await stat(file).catch(() => undefined);
  if (!found?.isFile() || file === undefined) return undefined;
  const read = (/** @type {number} */ start, /** @type {number} */ end) => (end > start ? createReadStream(file, { start, end: end - 1 }) : pieces(Buffer.alloc(0)));
  return { length: found.size, tag: `"${found.size}-${found.mtimeMs}"`, read };
}

/** @param {Buffer} buffer */
async function* pieces(buffer) {
  for (let at = 0; at < buffer.length; at += 65536) yield buffer.subarray(at, at + 65536);
}

/**
 * @param {Behaviour} behaviour
 * @param {{ tag: string }} content
 * @param {number} number
 */
function etagOf({ etag }, content, number) {
  if (typeof etag === 'function') return etag(number);
  return etag === undefined ? content.tag : etag;
}

/**
 * Parses a single range of bytes; several ranges are not supported.
 * @param {string | undefined} header
 * @param {number} length
 */
function parseRange(header, length) {
  const match = /^bytes=(\d*)-(\d*)$/.exec(header ?? '');
  if (!match || (match[1] === '' && match[2] === '')) return undefined;
  const first = match[1] === '' ? Math.max(0, length - Number(match[2])) : Number(match[1]);
  const last = match[1] === '' || match[2] === '' ? length - 1 : Math.min(Number(match[2]), length - 1);
  return first > last ? 'unsatisfiable' : { first, last };
}
