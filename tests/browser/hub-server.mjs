// @ts-check
// Repositories of a hub on our own servers, with the hub's HTTP interface: a listing by revision,
// small files at once, and large ones by a redirect to another origin, which stores them by
// content.

import { createHash } from 'node:crypto';

/** The commit of `main`. */
export const COMMIT = '0123456789abcdef0123456789abcdef01234567';

/**
 * @typedef {import('./server.mjs').Server} Server
 * @typedef {import('./server.mjs').Behaviour} Behaviour
 */

/**
 * Puts a repository on `server`, and its .safetensors files on `store`.
 * @param {{ server: Server, store: Server }} places
 * @param {string} id
 * @param {Record<string, Uint8Array | string>} files by path
 * @param {{ token?: string, lengths?: Record<string, number>, revision?: string, stored?:
 * Behaviour, hub?: Behaviour }} [options] `lengths`: false lengths for the listing; `stored`,
 * `hub`: behaviour of both servers for large files
 * @returns {{ stored: Record<string, string>, resolved: (path: string) => string }} paths of the
 * large files on `store`, and a function for paths on `server`
 */
export function publish({ server, store }, id, files, { token, lengths = {}, revision = 'main', stored = {}, hub = {} } = {}) {
  /** @type {Record<string, string>} */
  const places = {};
  const resolved = (/** @type {string} */ path) => `/${id}/resolve/${COMMIT}/${path}`;
  const siblings = Object.entries(files).map(([path, content]) => {
    const bytes = Buffer.from(content);
    const sha256 = createHash('sha256').update(bytes).digest('hex');
    const size = lengths[path] ?? bytes.length;
    if (!path.endsWith('.safetensors')) {
      server.route(resolved(path), { bytes, token });
      return { rfilename: path, size, blobId: sha256.slice(0, 40) };
    }
    places[path] = `/store/${sha256}`;
    server.route(resolved(path), { location: store.route(places[path], { bytes, ...stored }), token, ...hub });
    return { rfilename: path, size, blobId: sha256.slice(0, 40), lfs: { sha256, size, pointerSize: 134 } };
  });
  const listing = JSON.stringify({ id, sha: COMMIT, siblings });
  server.route(`/api/models/${id}/revision/${revision}`, { bytes: listing, type: 'application/json', token });
  return { stored: places, resolved };
}
