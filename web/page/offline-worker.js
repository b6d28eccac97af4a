// @ts-check
// The service worker: caches the page and the module, so that they open without a network. `cargo
// xtask web` puts `FILES` before this in dist/sw.js: the SHA-256 of each file by its path. All
// files of one version come from one cache, and each was checked when it was cached. So an old file
// is never served beside a new one, not even to a tab that is open during an update.

/** @type {Record<string, string>} */
const files = /** @type {any} */ (globalThis).FILES;
/** The used members of ServiceWorkerGlobalScope. */
const scope = /** @type {any} */ (globalThis);
const root = new URL('./', scope.location.href);
/** Start of the names of this site's caches: another site may share its origin. */
const CACHE = `wgvae-page ${root.pathname} `;

/** Isolates pages from other origins, without which the CPU may not use several threads. */
const ISOLATION = { 'Cross-Origin-Opener-Policy': 'same-origin', 'Cross-Origin-Embedder-Policy': 'require-corp' };

/** Name of this version's cache: any changed file gives another name. */
const name = (async () => CACHE + (await sha256(new TextEncoder().encode(JSON.stringify(files)))))();

scope.addEventListener('install', (/** @type {any} */ event) => event.waitUntil(keepAll()));
scope.addEventListener('activate', (/** @type {any} */ event) => event.waitUntil(dropOthers()));
scope.addEventListener('fetch', (/** @type {any} */ event) => {
  const path = pathOf(event.request);
  if (path !== undefined) event.respondWith(answer(event.request, path));
});
// Sent by a page whose visitor wants the new version. It takes over only if no other page runs the
// old one.
scope.addEventListener('message', (/** @type {any} */ event) => event.waitUntil(takeOver(event.source)));

/**
 * Caches all files, or none: a file with a wrong hash belongs to another version that is being
 * uploaded.
 */
async function keepAll() {
  const cache = await caches.open(await name);
  for (const [path, hash] of Object.entries(files)) {
    const answer = await fetch(new URL(path, root), { cache: 'no-cache' });
    const found = answer.ok ? await sha256(await answer.clone().arrayBuffer()) : answer.status;
    if (found !== hash) {
      await caches.delete(await name);
      throw new Error(`${path}: expected ${hash}, found ${found}`);
    }
    await cache.put(new URL(path, root), answer);
  }
}

/** @param {any} page sender of the request */
async function takeOver(page) {
  const windows = await scope.clients.matchAll({ type: 'window', includeUncontrolled: true });
  // Other sites of this origin have versions of their own.
  const pages = windows.filter((/** @type {{ url: string }} */ { url }) => url.startsWith(root.href));
  if (pages.length === 1) await scope.skipWaiting();
  else page.postMessage('others are open');
}

async function dropOthers() {
  const mine = await name;
  const names = await caches.keys();
  // Versions before December 2026 had no path in the names.
  const isOfSite = (/** @type {string} */ other) => other.startsWith(CACHE) || /^wgvae-page-[0-9a-f]{64}$/.test(other);
  await Promise.all(names.filter((other) => isOfSite(other) && other !== mine).map((other) => caches.delete(other)));
}

/**
 * Returns the path of a cached file; undefined for anything else.
 * @param {Request} request
 */
function pathOf({ method, url, mode }) {
  const { origin, pathname } = new URL(url);
  if (method !== 'GET' || origin !== root.origin || !pathname.startsWith(root.pathname)) return undefined;
  const path = decodeURIComponent(pathname.slice(root.pathname.length)) || (mode === 'navigate' ? 'index.html' : '');
  return Object.hasOwn(files, path) ? path : undefined;
}

/**
 * @param {Request} request
 * @param {string} path
 */
async function answer(request, path) {
  const cache = await caches.open(await name);
  const kept = await cache.match(new URL(path, root));
  // The browser may have evicted it.
  const found = kept ? await part(request, kept) : await fetch(request);
  const isProgram = request.mode === 'navigate' || request.destination === 'worker';
  return isProgram && found.type !== 'opaqueredirect' ? isolated(found) : found;
}

/** @param {Response} found */
function isolated(found) {
  const headers = new Headers(found.headers);
  for (const [name, value] of Object.entries(ISOLATION)) headers.set(name, value);
  return new Response(found.body, { status: found.status, headers });
}

/**
 * Returns a file, or a range of it: the demo is requested in ranges like any model.
 * @param {Request} request
 * @param {Response} kept
 */
async function part(request, kept) {
  const [, first, last] = /^bytes=(\d+)-(\d*)$/.exec(request.headers.get('Range') ?? '') ?? [];
  const condition = request.headers.get('If-Range');
  // Files of servers without ETag are requested with their date.
  const isKept = !condition || ['ETag', 'Last-Modified'].some((name) => kept.headers.get(name) === condition);
  if (first === undefined || !isKept) return kept;
  const whole = await kept.blob();
  const end = Math.min(last ? Number(last) + 1 : whole.size, whole.size);
  const headers = new Headers(kept.headers);
  if (Number(first) >= end) return new Response(null, { status: 416, headers: { 'Content-Range': `bytes */${whole.size}` } });
  headers.set('Content-Range', `bytes ${first}-${end - 1}/${whole.size}`);
  headers.set('Content-Length', String(end - Number(first)));
  return new Response(whole.slice(Number(first), end), { status: 206, headers });
}

/** @param {BufferSource} bytes */
async function sha256(bytes) {
  const digest = new Uint8Array(await crypto.subtle.digest('SHA-256', bytes));
  return Array.from(digest, (byte) => byte.toString(16).padStart(2, '0')).join('');
}
