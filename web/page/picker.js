// @ts-check
// Files that are chosen with a button.

import { element } from './elements.js';

/**
 * @param {string} id id of an `<input type="file">`
 * @param {(files: File[]) => void} onFiles
 */
export function takeFiles(id, onFiles) {
  const input = element(id, HTMLInputElement);
  input.addEventListener('change', () => {
    const files = [...(input.files ?? [])];
    // So that the same file can be chosen again.
    input.value = '';
    if (files.length > 0) onFiles(files);
  });
}
