// @ts-check
// Calls from one thread to another, in the manner of Comlink. It also carries values that neither a
// structured clone nor Comlink can: abort signals, listeners, iterators, and this package's errors
// and models of the hub. Each end of a port has one.

import { WgvaeError, mismatch, messageOf, reportAside } from './errors.js';
import { HubModel } from './hub.js';
import { isIterable } from './iterate.js';
import { guarded } from './listener.js';
import { isA, isUrl } from './realms.js';
import { movingWith } from './transfer.js';

/** Key that marks a stand-in for a value that cannot be sent. */
const STANDS_FOR = '$wgvae';

/** Key of a message between the ends. A caller's worker may have messages of its own. */
const MESSAGE = '$wgvaeLink';

/**
 * A message between the ends. A call gets an answer, a `tell` does not.
 * @typedef {{ id: number, call: string, parameters: unknown[] } | { tell: string, parameters:
 * unknown[] } | { id: number, value: unknown } | { id: number, error: unknown }} Message
 */
/**
 * Functions that release what a message holds on this side until its call ends, and the objects
 * that move to the other side.
 * @typedef {{ frees: (() => void)[], moved: Transferable[] }} Held
 */
/** @typedef {Pick<Worker, 'postMessage' | 'addEventListener'>} Port */

/** @returns {Held} */
const nothing = () => ({ frees: [], moved: [] });

export class Link {
  #port;
  #gives;
  #last = 0;
  /** @type {Map<number, { resolve(value: any): void, reject(error: unknown): void }>} */
  #waiting = new Map();
  /**
   * Functions that the other side may call, by name.
   * @type {Map<string, (...parameters: any[]) => unknown>}
   */
  #offered = new Map();
  /** The error, after the other side has failed. @type {WgvaeError | undefined} */
  #failed;
  /** True once a message of the other side has arrived. */
  isUp = false;

  /**
   * @param {Port} port
   * @param {{ gives: boolean }} options `gives`: true to move results to the other side, false to
   * copy them
   */
  constructor(port, { gives }) {
    this.#port = port;
    this.#gives = gives;
    port.addEventListener('message', (event) => {
      const message = /** @type {MessageEvent<{ [MESSAGE]?: Message } | undefined>} */ (event).data?.[MESSAGE];
      if (message) this.#receive(message);
    });
  }

  /**
   * @param {Message} message
   * @param {Transferable[]} [moved]
   */
  #send(message, moved = []) {
    this.#port.postMessage({ [MESSAGE]: message }, moved);
  }

  /**
   * @param {string} name
   * @param {(...parameters: any[]) => unknown} task
   */
  offer(name, task) {
    this.#offered.set(name, task);
  }

  /**
   * Calls a function that the other side has offered. `release` frees the parameters' stand-ins on
   * this side, when the other side does not need them any more.
   * @param {string} name
   * @param {unknown[]} parameters
   * @returns {{ answer: Promise<any>, release(): void }}
   */
  call(name, parameters) {
    const held = nothing();
    const id = (this.#last += 1);
    const answer = new Promise((resolve, reject) => {
      if (this.#failed) return reject(this.#failed);
      this.#waiting.set(id, { resolve, reject });
      try {
        const packed = this.#pack(parameters, held);
        this.#send({ id, call: name, parameters: packed }, held.moved);
      } catch (cause) {
        this.#waiting.delete(id);
        reject(unsendable('argument', cause));
      }
    });
    return { answer, release: () => held.frees.splice(0).forEach((free) => free()) };
  }

  /** Rejects all calls to the other side, now and later. @param {WgvaeError} error */
  fail(error) {
    this.#failed = error;
    for (const { reject } of this.#waiting.values()) reject(error);
    this.#waiting.clear();
  }

  /** @param {Message} message */
  #receive(message) {
    this.isUp = true;
    if ('tell' in message) {
      this.#offered.get(message.tell)?.(...this.#unpack(message.parameters));
    } else if ('call' in message) {
      this.#answer(message);
    } else {
      const waiting = this.#waiting.get(message.id);
      this.#waiting.delete(message.id);
      if ('error' in message) waiting?.reject(this.#unpack(message.error));
      else waiting?.resolve(this.#unpack(message.value));
    }
  }

  /** @param {Extract<Message, { call: string }>} message */
  async #answer({ id, call, parameters }) {
    try {
      const task = this.#offered.get(call);
      if (!task) throw mismatch('input', 'call', 'one that the other side answers', call);
      const value = await task(...this.#unpack(parameters));
      const held = nothing();
      const packed = this.#pack(value, held);
      this.#send({ id, value: packed }, this.#gives ? transferables(value) : held.moved);
    } catch (error) {
      this.#refuse(id, error);
    }
  }

  /**
   * @param {number} id
   * @param {unknown} error
   */
  #refuse(id, error) {
    try {
      this.#send({ id, error: this.#pack(error, nothing()) });
    } catch {
      // The caller's own error, with something in it that cannot be sent.
      this.#send({ id, error: this.#pack(new Error(messageOf(error)), nothing()) });
    }
  }

  /**
   * Offers `task` to the other side, and returns its name.
   * @param {(...parameters: any[]) => unknown} task
   * @param {Held} held
   */
  #name(task, held) {
    const name = `${(this.#last += 1)}`;
    this.#offered.set(name, task);
    held.frees.push(() => this.#offered.delete(name));
    return name;
  }

  /**
   * Returns the value in a form that can be sent.
   * @param {any} value
   * @param {Held} held
   * @returns {any}
   */
  #pack(value, held) {
    const stand = (/** @type {string} */ kind, /** @type {object} */ facts) => ({ [STANDS_FOR]: kind, ...facts });
    if (typeof value === 'function') return stand('listener', { name: this.#name(guarded(value), held) });
    if (typeof value !== 'object' || value === null) return value;
    held.moved.push(...(movingWith(value) ?? []));
    if (isA(value, 'AbortSignal')) return stand('signal', this.#packSignal(value, held));
    if (value instanceof WgvaeError) {
      const { name, stack, message, code, cause, ...facts } = /** @type {any} */ (value);
      return stand('error', { message, code, facts, stack });
    }
    if (value instanceof HubModel) return stand('hub', { id: value.id, options: this.#pack(value.options, held) });
    if (isUrl(value)) return value.href;
    if (Array.isArray(value)) return value.map((each) => this.#pack(each, held));
    if (isIterable(value)) return stand('iterator', this.#packIterator(value, held));
    if (Object.getPrototypeOf(value) !== Object.prototype) return value;
    return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, this.#pack(each, held)]));
  }

  /**
   * @param {AbortSignal} signal
   * @param {Held} held
   */
  #packSignal(signal, held) {
    // The other side offers a task by this name, where a number is one of its own names.
    const name = `signal ${(this.#last += 1)}`;
    const tell = (/** @type {boolean} */ isAborted) => this.#send({ tell: name, parameters: [isAborted] });
    const abort = () => tell(true);
    signal.addEventListener('abort', abort);
    held.frees.push(() => {
      signal.removeEventListener('abort', abort);
      tell(false);
    });
    return { name, aborted: signal.aborted };
  }

  /**
   * @param {any} iterable
   * @param {Held} held
   */
  #packIterator(iterable, held) {
    const iterator = (iterable[Symbol.asyncIterator] ?? iterable[Symbol.iterator]).call(iterable);
    const own = nothing();
    let isOver = false;
    const end = () => {
      isOver = true;
      own.frees.splice(0).forEach((free) => free());
    };
    const next = async () => {
      try {
        const { done, value } = await iterator.next();
        if (done) end();
        return { done, value: await value };
      } catch (error) {
        end();
        throw error;
      }
    };
    const stop = async () => {
      if (isOver) return;
      end();
      await iterator.return?.();
    };
    // For a call that ends before the other side has stopped: an abort does not wait for it.
    held.frees.push(() => void stop().catch(reportAside));
    return { next: this.#name(next, own), stop: this.#name(stop, own) };
  }

  /**
   * Restores a value that the other side has packed.
   * @param {any} value
   * @returns {any}
   */
  #unpack(value) {
    if (Array.isArray(value)) return value.map((each) => this.#unpack(each));
    if (typeof value !== 'object' || value === null || Object.getPrototypeOf(value) !== Object.prototype) return value;
    switch (value[STANDS_FOR]) {
      case 'listener':
        return (/** @type {unknown[]} */ ...parameters) => this.#send({ tell: value.name, parameters: this.#pack(parameters, nothing()) });
      case 'signal':
        return this.#unpackSignal(value);
      case 'error':
        return Object.assign(new WgvaeError(value.code, value.message, value.facts), { stack: value.stack });
      case 'hub':
        return new HubModel(value.id, value.options);
      case 'iterator':
        return this.#unpackIterator(value);
      default:
        return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, this.#unpack(each)]));
    }
  }

  /**
   * Returns a signal that follows the one on the other side. Its reason stays there, and ends the
   * call there.
   * @param {{ name: string, aborted: boolean }} packed
   */
  #unpackSignal({ name, aborted }) {
    const controller = new AbortController();
    if (aborted) controller.abort();
    this.offer(name, (isAborted) => {
      // Otherwise the call is over.
      if (isAborted) controller.abort();
      else this.#offered.delete(name);
    });
    return controller.signal;
  }

  /**
   * @param {{ next: string, stop: string }} packed
   * @returns {AsyncGenerator<any, void, undefined>}
   */
  async *#unpackIterator({ next, stop }) {
    let isOver = false;
    try {
      for (;;) {
        const { done, value } = await this.call(next, []).answer.catch((error) => {
          isOver = true;
          throw error;
        });
        isOver = done;
        if (done) return;
        yield value;
      }
    } finally {
      // On the other side it may be over and forgotten.
      if (!isOver) await this.call(stop, []).answer.catch(() => {});
    }
  }
}

/**
 * Lists the objects that move to the other side instead of being copied: pictures, and arrays with
 * memory of their own.
 * @param {any} value from this side
 * @returns {Transferable[]}
 */
function transferables(value) {
  if (typeof value !== 'object' || value === null) return [];
  if (isA(value, 'ImageBitmap', 'VideoFrame')) return [value];
  if (ArrayBuffer.isView(value)) return value.buffer instanceof ArrayBuffer ? [value.buffer] : [];
  if (isA(value, 'ImageData')) return transferables(value.data);
  if (Object.getPrototypeOf(value) !== Object.prototype) return [];
  return Object.values(value).flatMap(transferables);
}

/**
 * @param {string} what
 * @param {unknown} cause
 */
function unsendable(what, cause) {
  return mismatch('input', what, 'something that can be sent to a worker', messageOf(cause), cause);
}
