// @ts-check
// A server with every fault that occurs in practice, in place of `fetch`: it is slow, breaks off,
// refuses, changes files, and sends wrong headers. Each wrong answer can be detected: the bytes
// that a reader accepts must be the file's bytes.

/** @typedef {import('./random.mjs').Random} Random */
/** @typedef {import('./clock.mjs').Clock} Clock */

/**
 * One version of a file. `etag` and `modified` are its headers.
 * @typedef {{ bytes: Uint8Array, etag: string | null, modified: string | null }} Version
 */

/**
 * Properties of a server: `ranges`: it supports ranges; `type`: origin of the answers; `exposes`:
 * headers that a page of another origin may read; `tellsLength`: whole answers have a length;
 * `isCompressed`: they are compressed; `redirects`: they come from another address, which is valid
 * for a while.
 * @typedef {{
 *   ranges: boolean, type: 'basic' | 'cors', exposes: { etag: boolean, range: boolean, encoding:
 *   boolean }, tellsLength: boolean, isCompressed: boolean, validators: 'strong' | 'weak' |
 *   'modified' | 'both' | 'none', lengthByHead: boolean, redirects: boolean,
 * }} Manners
 */

/** Faults of one request. */
const FAULTS = /** @type {const} */ ([
  'network', 'status', 'page', 'short', 'long', 'breaks', 'range-syntax', 'range-shift', 'range-total', 'whole', 'multipart', 'stall', 'stall-in-body',
]);

/** Target of redirects. */
const ELSEWHERE = 'https://elsewhere.test/signed';

const STATUSES = [201, 204, 301, 304, 400, 401, 403, 404, 408, 410, 412, 416, 429, 429, 500, 502, 503, 503, 504];

/** The used part of a Response. */
class Answer {
  statusText = '';
  redirected = false;
  url = '';

  /**
   * @param {number} status
   * @param {Headers} headers
   * @param {ReadableStream<Uint8Array> | null} body
   * @param {string} type
   */
  constructor(status, headers, body, type) {
    this.status = status;
    this.headers = headers;
    this.body = body;
    this.type = type;
  }

  get ok() {
    return this.status >= 200 && this.status < 300;
  }

  async arrayBuffer() {
    const reader = this.body?.getReader();
    /** @type {Uint8Array[]} */
    const chunks = [];
    for (let next = await reader?.read(); next?.value; next = await reader?.read()) chunks.push(next.value);
    return joined(chunks).buffer;
  }
}

/** @param {Uint8Array[]} chunks */
function joined(chunks) {
  const whole = new Uint8Array(chunks.reduce((sum, chunk) => sum + chunk.length, 0));
  let offset = 0;
  for (const chunk of chunks) {
    whole.set(chunk, offset);
    offset += chunk.length;
  }
  return whole;
}

/** A file on a server. */
export class FileServer {
  /** True if a request was never answered: only an abort ends the wait for it. */
  hasStalled = false;
  requests = 0;
  /** Versions in order; the last is the current one. @type {Version[]} */
  versions = [];
  #random;
  #clock;

  /**
   * @param {Random} random
   * @param {Clock} clock
   * @param {{ manners: Manners, faults: number, length: number }} options `faults`: probability of
   * a fault
   */
  constructor(random, clock, { manners, faults, length }) {
    this.#random = random;
    this.#clock = clock;
    this.manners = manners;
    this.faults = faults;
    this.#publish(length);
  }

  /** The current version. */
  get version() {
    return /** @type {Version} */ (this.versions.at(-1));
  }

  /**
   * Replaces the file by one that differs in a validator that the page may read, or in its length.
   */
  change() {
    const { manners, version } = this;
    const isTold = manners.validators !== 'none' && (manners.validators === 'modified' || manners.validators === 'both' || this.#showsEtag());
    const isSameLength = isTold && this.#random.chance(0.5);
    this.#publish(isSameLength ? version.bytes.length : version.bytes.length + this.#random.pick([-1, 1, 17, 1000]));
  }

  /**
   * @type {(url: URL | string, options: { method?: string, headers?: Record<string, string>,
   * signal?: AbortSignal }) => Promise<Answer>}
   */
  fetch = async (url, options) => {
    const isElsewhere = `${url}` === ELSEWHERE;
    if (isElsewhere && this.#random.chance(0.2)) return new Answer(403, new Headers(), null, this.manners.type);
    const answer = await this.#fetch(options);
    return this.manners.redirects && !isElsewhere ? Object.assign(answer, { redirected: true, url: ELSEWHERE }) : answer;
  };

  /**
   * @param {{ method?: string, headers?: Record<string, string>, signal?: AbortSignal }} options
   * @returns {Promise<Answer>}
   */
  async #fetch({ method = 'GET', headers = {}, signal = new AbortController().signal }) {
    this.requests += 1;
    signal.throwIfAborted();
    const fault = this.#random.chance(this.faults) ? this.#random.pick(FAULTS) : 'none';
    if (this.#random.chance(0.3)) await abortable(this.#clock.wait(this.#random.below(5000)), signal);
    if (fault === 'stall') return this.#never(signal);
    if (fault === 'network') throw new TypeError('failed to fetch');
    if (fault === 'status') return this.#refusal(signal);
    if (fault === 'page') return this.#answer(200, { 'Content-Type': 'text/html; charset=utf-8' }, this.#random.bytes(40), signal);
    if (method === 'HEAD') return this.#head(signal);
    const range = this.manners.ranges && fault !== 'whole' ? this.#range(headers) : undefined;
    if (!range) return this.#whole(fault, signal);
    if (range.offset >= this.version.bytes.length) {
      return this.#answer(416, { 'Content-Range': `bytes */${this.version.bytes.length}` }, new Uint8Array(), signal);
    }
    return this.#part(range, fault, signal);
  }

  #showsEtag() {
    return this.manners.validators !== 'none' && this.manners.validators !== 'modified' && (this.manners.type === 'basic' || this.manners.exposes.etag);
  }

  /** @param {number} length */
  #publish(length) {
    const random = this.#random;
    const number = this.versions.length + 1;
    const { validators } = this.manners;
    this.versions.push({
      bytes: random.bytes(Math.max(0, length)),
      etag: { strong: `"v${number}"`, weak: `W/"v${number}"`, both: `"v${number}"`, modified: null, none: null }[validators],
      modified: ['modified', 'both'].includes(validators) ? new Date(number * 1e9).toUTCString() : null,
    });
  }

  /**
   * Returns the part that a request asks for; undefined for the whole file, or if it asks for a
   * version that is gone.
   * @param {Record<string, string>} headers
   */
  #range(headers) {
    const { etag, modified } = this.version;
    const condition = headers['If-Range'];
    // Weak validators never match here: RFC 9110, 13.1.5.
    if (condition !== undefined && condition !== etag && condition !== modified) return undefined;
    const match = /^bytes=(\d+)-(\d+)$/.exec(headers['Range'] ?? '');
    const [offset, last] = [Number(match?.[1]), Number(match?.[2])];
    return match && offset <= last ? { offset, length: last - offset + 1 } : undefined;
  }

  /** @param {AbortSignal} signal */
  #head(signal) {
    const { manners, version } = this;
    return this.#answer(200, manners.lengthByHead ? { 'Content-Length': `${version.bytes.length}` } : {}, new Uint8Array(), signal);
  }

  /** @param {AbortSignal} signal */
  #refusal(signal) {
    const status = this.#random.pick(STATUSES);
    const wait = this.#random.pick(['0', '7', '119', '3600', '', 'soon', 'Wed, 21 Oct 2015 07:28:00 GMT']);
    return this.#answer(status, this.#random.chance(0.3) ? { 'Retry-After': wait } : {}, this.#random.bytes(this.#random.below(30)), signal);
  }

  /**
   * @param {{ offset: number, length: number }} range
   * @param {string} fault
   * @param {AbortSignal} signal
   */
  #part({ offset, length }, fault, signal) {
    const { bytes } = this.version;
    const part = bytes.slice(offset, offset + length);
    if (fault === 'multipart') return this.#answer(206, { 'Content-Type': 'multipart/byteranges; boundary=x' }, this.#random.bytes(part.length + 90), signal);
    const shift = fault === 'range-shift' ? 1 : 0;
    const total = fault === 'range-total' ? bytes.length + 1 : this.#random.chance(0.05) ? '*' : bytes.length;
    const told = fault === 'range-syntax' ? this.#random.pick(['bytes 0-', 'octets 0-1/2', '', 'bytes 5-1', `bytes ${offset}-x/9`]) : undefined;
    const range = told ?? `bytes ${offset + shift}-${offset + shift + part.length - 1}/${total}`;
    // A header that cannot be read cannot reveal the fault.
    if (shift && !this.#showsRange()) return this.#never(signal);
    return this.#answer(206, { 'Content-Range': range, ...this.#validators() }, part, signal, fault);
  }

  #showsRange() {
    return this.manners.type === 'basic' || this.manners.exposes.range;
  }

  #validators() {
    const { etag, modified } = this.version;
    return { ...(etag && { 'ETag': etag }), ...(modified && { 'Last-Modified': modified }) };
  }

  /** @param {string} fault @param {AbortSignal} signal */
  #whole(fault, signal) {
    const { manners, version } = this;
    const length = manners.isCompressed ? 7 + (version.bytes.length >> 1) : version.bytes.length;
    const headers = {
      ...this.#validators(),
      ...(manners.isCompressed && { 'Content-Encoding': 'gzip' }),
      ...(manners.tellsLength && { 'Content-Length': `${length}` }),
    };
    // A reader that does not know the length cannot notice a missing end. The length of an answer
    // of another origin may be the compressed one.
    const isUnseen = fault === 'short' && (manners.isCompressed || manners.type === 'cors' || !manners.tellsLength);
    return this.#answer(200, headers, version.bytes, signal, isUnseen || fault === 'long' ? 'none' : fault);
  }

  /**
   * @param {number} status
   * @param {Record<string, string>} headers
   * @param {Uint8Array} bytes
   * @param {AbortSignal} signal
   * @param {string} [fault]
   */
  #answer(status, headers, bytes, signal, fault = 'none') {
    const { type, exposes } = this.manners;
    const shown = new Headers({ 'Content-Type': 'application/octet-stream', ...headers });
    if (type === 'cors') {
      if (!exposes.etag) shown.delete('ETag');
      if (!exposes.encoding) shown.delete('Content-Encoding');
      if (!exposes.range) shown.delete('Content-Range');
    }
    return new Answer(status, shown, status === 204 || status === 304 ? null : this.#body(bytes, fault, signal), type);
  }

  /**
   * @param {Uint8Array} bytes
   * @param {string} fault
   * @param {AbortSignal} signal
   */
  #body(bytes, fault, signal) {
    const random = this.#random;
    const cut = random.below(bytes.length + 1);
    const sent = fault === 'short' && cut < bytes.length ? bytes.slice(0, cut) : fault === 'long' ? joined([bytes, random.bytes(random.between(1, 50))]) : bytes;
    let offset = 0;
    /** @type {ReadableStreamDefaultController<Uint8Array>} */
    let controller;
    const abort = () => controller.error(random.chance(0.5) ? signal.reason : new DOMException('aborted', 'AbortError'));
    const pull = async () => {
      if (random.chance(0.1)) await this.#clock.wait(random.below(2000));
      if (signal.aborted) return;
      if (fault === 'breaks' && offset >= cut) return controller.error(new TypeError('network error'));
      if (fault === 'stall-in-body' && offset >= cut) {
        this.hasStalled = true;
        return new Promise(() => {});
      }
      if (offset >= sent.length) {
        signal.removeEventListener('abort', abort);
        return controller.close();
      }
      const most = ['breaks', 'stall-in-body'].includes(fault) ? cut - offset : sent.length - offset;
      const length = Math.min(most, random.chance(0.5) ? most : random.between(0, 700));
      controller.enqueue(sent.slice(offset, offset + length));
      offset += length;
    };
    const start = (/** @type {ReadableStreamDefaultController<Uint8Array>} */ own) => {
      controller = own;
      if (signal.aborted) abort();
      else signal.addEventListener('abort', abort);
    };
    return new ReadableStream({ start, pull, cancel: () => signal.removeEventListener('abort', abort) });
  }

  /** @param {AbortSignal} signal @returns {Promise<never>} */
  #never(signal) {
    this.hasStalled = true;
    return abortable(new Promise(() => {}), signal);
  }
}

/** @template T @param {Promise<T>} promise @param {AbortSignal} signal @returns {Promise<T>} */
function abortable(promise, signal) {
  return new Promise((resolve, reject) => {
    const abort = () => reject(signal.reason);
    if (signal.aborted) abort();
    signal.addEventListener('abort', abort);
    promise.then(resolve, reject).finally(() => signal.removeEventListener('abort', abort));
  });
}

/**
 * Returns random properties of a server.
 * @param {Random} random
 * @returns {Manners}
 */
export function someManners(random) {
  return {
    ranges: random.chance(0.7),
    type: random.chance(0.5) ? 'basic' : 'cors',
    exposes: { etag: random.chance(0.5), range: random.chance(0.5), encoding: random.chance(0.5) },
    tellsLength: random.chance(0.7),
    isCompressed: random.chance(0.2),
    validators: random.pick(['strong', 'weak', 'modified', 'both', 'none']),
    lengthByHead: random.chance(0.8),
    redirects: random.chance(0.3),
  };
}
