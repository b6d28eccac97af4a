// @ts-check
// The page's state as a link: the address bar always shows it, and it can be copied and shared.

import { copyBy } from './copy.js';
import { element, setText } from './elements.js';
import { writeQuery } from './query.js';

/** @typedef {import('./query.js').Query} Query */

export class Link {
  /** @type {Query} */
  #query;
  /**
   * Open files of the user, which a link cannot contain.
   * @type {Set<'model' | 'input'>}
   */
  #files = new Set();
  #onFailure;

  /**
   * @param {Query} query parameters that the page was opened with
   * @param {(error: unknown) => void} onFailure
   */
  constructor(query, onFailure) {
    this.#query = query;
    this.#onFailure = onFailure;
    const share = element('share');
    share.hidden = !('share' in navigator);
    share.addEventListener('click', () => this.#share());
    element('copy-link').addEventListener('click', () => this.#copy());
  }

  /**
   * Applies changes to the link.
   * @param {Partial<Query>} changes
   */
  set(changes) {
    this.#query = { ...this.#query, ...changes };
    if (changes.model) this.#files.delete('model');
    if (changes.latents) this.#files.delete('input');
    this.#write();
  }

  /**
   * Removes the addresses of the model or of the input, because files of the user replaced them.
   * @param {'model' | 'input'} kind
   */
  takeFiles(kind) {
    this.#files.add(kind);
    this.set(kind === 'model' ? { model: undefined, config: undefined } : { latents: undefined, index: undefined });
  }

  /**
   * Forgets files of the user that something else has replaced.
   * @param {'model' | 'input'} kind
   */
  leaveFiles(kind) {
    this.#files.delete(kind);
  }

  #write() {
    history.replaceState(history.state, '', `${location.pathname}${writeQuery(this.#query)}${location.hash}`);
  }

  /** Names the open files that the link lacks. */
  get #without() {
    const names = { model: 'the model', input: 'the latents or the picture' };
    const missing = [...this.#files].map((kind) => names[kind]).join(' and ');
    return missing && `Without ${missing}: links contain no local files.`;
  }

  async #copy() {
    try {
      await copyBy(element('copy-link'), () => navigator.clipboard.writeText(location.href));
      setText('said', this.#without || 'The link is copied.');
    } catch (error) {
      this.#onFailure(error);
    }
  }

  async #share() {
    setText('said', this.#without);
    await shareOrFail({ title: document.title, url: location.href }, this.#onFailure);
  }
}

/**
 * Shares something by the system's dialog.
 * @param {ShareData} data
 * @param {(error: unknown) => void} onFailure
 */
export async function shareOrFail(data, onFailure) {
  try {
    await navigator.share(data);
  } catch (error) {
    // The user closed the dialog.
    if (!(error instanceof DOMException && error.name === 'AbortError')) onFailure(error);
  }
}
