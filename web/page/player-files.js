// @ts-check
// The buttons that save a clip: as a WebM file, or as PNG files in a folder.

import { element, setText } from './elements.js';
import { hasFolders, saveIntoFolder } from './folder.js';
import { toWebm, webmCodec } from './webm.js';

export class PlayerFiles {
  #player;
  #save;
  #fail;
  #webm = element('player-webm', HTMLButtonElement);
  #folder = element('player-folder', HTMLButtonElement);
  /** @type {Awaited<ReturnType<typeof webmCodec>>} */
  #codec;
  /** Counter of clips. */
  #clip = 0;

  /**
   * @param {import('./player.js').Player} player
   * @param {(file: File) => void} save
   * @param {(code: string, message: string) => void} fail
   */
  constructor(player, save, fail) {
    this.#player = player;
    this.#save = save;
    this.#fail = fail;
    this.#folder.hidden = !hasFolders();
    this.#webm.addEventListener('click', () => this.#busy(this.#webm, (tell) => this.#saveWebm(tell)));
    this.#folder.addEventListener('click', () => this.#busy(this.#folder, (tell) => this.#saveFolder(tell)));
  }

  /** Begins another clip, which cannot be saved before it is complete. */
  open() {
    this.#clip += 1;
    this.#webm.disabled = this.#folder.disabled = true;
    setText('player-webm-why', '');
  }

  /** Enables saving the frames. @param {import('./news.js').Size} size */
  async finish(size) {
    const clip = this.#clip;
    this.#folder.disabled = this.#player.files.length === 0;
    const codec = await webmCodec(size);
    if (clip !== this.#clip) return;
    this.#codec = codec;
    this.#webm.disabled = !codec || this.#player.files.length === 0;
    setText('player-webm-why', codec ? `WebM files are ${codec.said}, which loses a little; PNG files lose nothing.` : 'This browser encodes no VP9 and no VP8: no WebM file can be made.');
  }

  /** @param {(done: number) => void} onFrame */
  async #saveWebm(onFrame) {
    const { files, rate } = this.#player;
    const name = `${this.#player.fileName()}.webm`;
    if (!this.#codec) return;
    const blob = await toWebm(files.map(({ blob }) => blob), { codec: this.#codec.codec, rate, onFrame });
    this.#save(new File([blob], name, { type: blob.type }));
  }

  /** @param {(done: number) => void} onFrame */
  async #saveFolder(onFrame) {
    const names = this.#player.files.map((_, index) => `${this.#player.fileName(index)}.png`);
    await saveIntoFolder(this.#player.files.map(({ blob }) => blob), { nameOf: (index) => names[index], onFrame });
  }

  /**
   * Shows the progress on the button itself.
   * @param {HTMLButtonElement} button
   * @param {(onFrame: (done: number) => void) => Promise<void>} work
   */
  async #busy(button, work) {
    const { id, textContent: label } = button;
    const [clip, total] = [this.#clip, this.#player.files.length];
    button.disabled = true;
    try {
      await work((done) => setText(id, `Saving ${done} of ${total}`));
    } catch (error) {
      this.#fail('io', `the clip cannot be saved: ${error instanceof Error ? error.message : error}`);
    }
    setText(id, label ?? '');
    if (clip === this.#clip) button.disabled = false;
  }
}
