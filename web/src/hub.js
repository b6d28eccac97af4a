// @ts-check
// Models of the Hugging Face Hub. Chooses a model's files among those of a repository, as the
// command line does (src/hub/listing.rs), all from the commit that was listed. The token goes to
// the hub's origin alone: fetch drops it on a redirect to another origin.

import { mismatch, WgvaeError } from './errors.js';
import { fetchText, openUrl } from './http.js';
import { checkOptions, LISTENER, oneOf, TEXT } from './options.js';
import { shardNames, weightFiles } from './weight-files.js';

/** @typedef {import('./sources.js').Access} Access */
/**
 * The hub's listing of a commit: its files by their paths.
 * @typedef {{ commit: string, files:
 * Map<string, { length?: number, validator?: string }> }} Listing
 */

/** No error shows the token. @type {import('./options.js').Checks} */
const OPTIONS = { revision: TEXT, subfolder: TEXT, file: TEXT, variant: oneOf('fp16'), token: undefined, endpoint: [isAddress, 'an http or https address'], fetch: LISTENER };

/**
 * @param {string} id
 * @param {import('./index.js').HubOptions} [options]
 */
export function hub(id, options) {
  return new HubModel(id, options);
}

/** A model by its name on the hub. */
export class HubModel {
  #options;
  #endpoint;

  /**
   * @param {string} id
   * @param {import('./index.js').HubOptions} [options]
   */
  constructor(id, options = {}) {
    checkOptions(options, OPTIONS);
    const { endpoint = 'https://huggingface.co', subfolder, file, token = '-' } = options;
    const revision = options.revision || 'main';
    if (!isPlain(id) || id.split('/').length !== 2) throw mismatch('input', 'model of the hub', 'owner/name', `"${id}"`);
    for (const path of [revision, subfolder, file]) {
      if (path && !isPlain(path)) throw mismatch('input', 'revision, folder or file on the hub', 'a plain name or path', `"${path}"`);
    }
    // The error of fetch for other characters would show the token.
    if (typeof token !== 'string' || !/^[\x21-\x7e]+$/.test(token)) throw mismatch('input', 'token', 'letters, digits and signs', 'others');
    this.id = id;
    this.revision = revision;
    this.#endpoint = endpoint.replace(/\/+$/, '');
    this.#options = options;
  }

  /** Options of the constructor, for another thread. */
  get options() {
    return this.#options;
  }

  /**
   * Finds the files of the model.
   * @param {Access} callers
   */
  async find(callers) {
    const access = callers.through(this.#fetch(callers));
    const listing = await this.#list(access);
    const file = (/** @type {string} */ path) => this.#file(path, listing, access);
    const { config, weights } = this.#wanted(listing);
    const [folder, index] = split(weights[0]);
    const shards = index.includes('.index.') && shardNames(this.#named(weights[0]), await file(weights[0]).text());
    const paths = shards ? shards.map((name) => folder + name) : weights;
    return { commit: listing.commit, config: listing.files.has(config) ? file(config) : undefined, weights: paths.map(file) };
  }

  /**
   * Returns a fetch that adds the token to requests to the hub's own origin.
   * @param {Access} access
   * @returns {import('./sources.js').Fetch}
   */
  #fetch(access) {
    const { token, fetch = access.fetch } = this.#options;
    const { origin } = new URL(this.#endpoint);
    return (url, init) => {
      const isHubs = token !== undefined && new URL(url).origin === origin;
      return fetch(url, isHubs ? { ...init, headers: { .../** @type {Record<string, string>} */ (init?.headers), Authorization: `Bearer ${token}` } } : init);
    };
  }

  /**
   * @param {Access} access
   * @returns {Promise<Listing>}
   */
  async #list(access) {
    const url = new URL(`${this.#endpoint}/api/models/${this.id}/revision/${encodeURIComponent(this.revision)}?blobs=true`);
    const text = await this.#inWords('', fetchText(url, access));
    let answer;
    try {
      answer = JSON.parse(text);
    } catch {
      // The check below reports it.
    }
    if (!Array.isArray(answer?.siblings)) throw mismatch('http', `${url}`, 'a list of files', 'none');
    const files = new Map();
    for (const { rfilename: path, size, lfs, blobId } of answer.siblings.map(Object)) {
      if (isInside(path)) files.set(path, { length: Number.isSafeInteger(size) ? size : undefined, validator: lfs?.sha256 ?? blobId });
    }
    // The commit also becomes part of a path.
    if (!isCommit(answer.sha)) throw mismatch('http', `${url}`, 'a commit as "sha": 40 or 64 hexadecimal digits', `${JSON.stringify(answer.sha)}`);
    return { commit: answer.sha, files };
  }

  /**
   * Returns the path of config.json, whether or not it exists, and the paths of the weights, or of
   * the index of their shards.
   * @param {Listing} listing
   */
  #wanted({ files }) {
    const { file, variant, subfolder } = this.#options;
    const names = (/** @type {string} */ folder) => [...files.keys()].filter((path) => split(path)[0] === folder).map((path) => split(path)[1]);
    let folder = subfolder ? `${subfolder}/` : '';
    if (file ? !files.has(folder + file) : folder && names(folder).length === 0) {
      throw new WgvaeError('format', `${this.#named(folder + (file ?? ''))}: no such file or folder among the ${files.size} files of the repository`);
    }
    if (file) return { config: `${split(folder + file)[0]}config.json`, weights: [folder + file] };
    const isWhole = files.has(`${folder}model_index.json`) || (!files.has(`${folder}config.json`) && names(`${folder}vae/`).length > 0);
    if (isWhole) folder += 'vae/';
    return { config: `${folder}config.json`, weights: weightFiles(this.#named(folder), names(folder), variant).map((name) => folder + name) };
  }

  /**
   * @param {string} path
   * @param {Listing} listing
   * @param {Access} access
   */
  #file(path, { commit, files }, access) {
    const at = (/** @type {string} */ revision) => {
      const place = [revision, ...path.split('/')].map(encodeURIComponent).join('/');
      return new URL(`${this.#endpoint}/${this.id}/resolve/${place}`);
    };
    const { length, validator } = files.get(path) ?? {};
    const open = async () => {
      // The cache key is the content: another commit with the same file needs no new download.
      const known = { length, url: at(this.revision).href, validator };
      const source = await this.#inWords(path, openUrl(at(commit), access, { known }));
      if (length === undefined || source.length === length) return source;
      source.release?.();
      throw mismatch('http', this.#named(path), `${length} bytes as the hub lists it`, `${source.length}`);
    };
    return { path, open, text: () => this.#inWords(path, fetchText(at(commit), access)) };
  }

  /** Returns the name of a file in errors. @param {string} path */
  #named(path) {
    return `hf:${this.id}/${path}`.replace(/\/$/, '');
  }

  /**
   * Awaits an answer of the hub, and explains its refusals in words that help.
   * @template T
   * @param {string} path
   * @param {Promise<T>} asked
   */
  async #inWords(path, asked) {
    try {
      return await asked;
    } catch (error) {
      if (!(error instanceof WgvaeError)) throw error;
      const { status = 0, retryAfter } = /** @type {{ status?: number, retryAfter?: number }} */ (error);
      const why = {
        401: 'the hub wants a token (401): there is no such repository, or it is private or gated: hub(id, { token })',
        403: `the hub refuses this token (403): accept the terms on the page of ${this.id} with its account`,
        404: 'the hub has no such repository, revision or file (404)',
        429: `the hub has been asked too often (429): try again ${retryAfter ? `in ${Math.ceil(retryAfter)} s` : 'later'}, or with a token`,
      }[status];
      throw why ? new WgvaeError(error.code, `${this.#named(path)}: ${why}`, { ...error, cause: error }) : error;
    }
  }
}

/** @param {string} text */
function isAddress(text) {
  try {
    return /^https?:$/.test(new URL(text).protocol);
  } catch {
    return false;
  }
}

/** Splits a path into its folder, with the final slash, and its name. @param {string} path */
function split(path) {
  const end = path.lastIndexOf('/') + 1;
  return [path.slice(0, end), path.slice(end)];
}

/**
 * True if the path comes from a caller and is a plain relative one.
 * @param {unknown} path
 * @returns {path is string}
 */
function isPlain(path) {
  return typeof path === 'string' && path.split('/').every((part) => /^(?!\.)[\p{L}\p{N}._\- +()]+$/u.test(part));
}

/**
 * True if a path from the hub stays inside its folder on every system, and can be printed.
 * @param {unknown} path
 */
function isInside(path) {
  return typeof path === 'string' && !/[\\:\p{Cc}]/u.test(path) && path.split('/').every((part) => !['', '.', '..'].includes(part));
}

/**
 * True if the hub names a commit. A pattern alone would take `undefined` for one.
 * @param {unknown} sha
 */
function isCommit(sha) {
  return typeof sha === 'string' && /^(?:[0-9a-f]{40}|[0-9a-f]{64})$/i.test(sha);
}
