// @ts-check
// Published VAEs that can be opened by name, without a token.

import { formatBytes } from './format.js';

/**
 * `bytes`: size of the file on the hub, encoder included.
 * @type {{ label: string, address: string, bytes: number }[]}
 */
export const KNOWN = [
  { label: 'TAESD, a tiny one for SD 1.x', address: 'hf:madebyollin/taesd', bytes: 9.8e6 },
  { label: 'TAEF1, a tiny one for FLUX.1', address: 'hf:madebyollin/taef1', bytes: 9.8e6 },
  { label: 'SD 1.x', address: 'hf:stabilityai/sd-vae-ft-mse', bytes: 335e6 },
  { label: 'SDXL', address: 'hf:madebyollin/sdxl-vae-fp16-fix', bytes: 335e6 },
  { label: 'FLUX.1 and Z-Image', address: 'hf:Tongyi-MAI/Z-Image-Turbo', bytes: 168e6 },
  { label: 'Qwen-Image', address: 'hf:Qwen/Qwen-Image', bytes: 254e6 },
  { label: 'Wan 2.1, for video', address: 'hf:Wan-AI/Wan2.1-T2V-1.3B-Diffusers', bytes: 508e6 },
];

/**
 * Fills a list with a button for each.
 * @param {HTMLElement} list
 * @param {(address: string) => void} onChoice
 */
export function listKnown(list, onChoice) {
  const items = KNOWN.map(({ label, address, bytes }) => {
    const item = document.createElement('li');
    const button = Object.assign(document.createElement('button'), { type: 'button', textContent: label, title: address });
    button.addEventListener('click', () => onChoice(address));
    const size = Object.assign(document.createElement('span'), { className: 'quiet', textContent: formatBytes(bytes) });
    item.append(button, size);
    return item;
  });
  list.replaceChildren(...items);
}
