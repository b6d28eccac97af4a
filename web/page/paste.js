// @ts-check
// Files and addresses that are pasted onto the page.

import { absolute } from './query.js';

/** Addresses of inputs. Only the file name tells them from addresses of models. */
const INPUT = /\.(npy|latent|png|jpe?g|webp|avif|gif|bmp|mp4|webm|mov|mkv)$|latent[^/]*\.safetensors$/i;

/**
 * @param {{ onFiles: (files: File[]) => void, onAddress: (kind: 'model' | 'input', url: string) =>
 * void }} listeners
 */
export function acceptPastes({ onFiles, onAddress }) {
  addEventListener('paste', (event) => {
    // In text fields, the text is pasted as usual.
    if (event.target instanceof Element && event.target.closest('input, textarea, [contenteditable]')) return;
    const files = [...(event.clipboardData?.files ?? [])];
    const url = addressIn(event.clipboardData?.getData('text/plain') ?? '');
    if (files.length > 0) onFiles(files);
    else if (url) onAddress(INPUT.test(url.split(/[?#]/)[0]) ? 'input' : 'model', url);
    else return;
    event.preventDefault();
  });
}

/** @param {string} text */
function addressIn(text) {
  return /^(https?:|hf:)\S+$/.test(text.trim()) ? absolute(text) : undefined;
}
