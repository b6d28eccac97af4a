// @ts-check
// Copying of text to the clipboard, confirmed on the button.

/** Time for which a button confirms, milliseconds. */
const SAID_FOR = 2000;

/**
 * @param {HTMLElement} button the pressed button
 * @param {() => Promise<void>} write writes to the clipboard
 */
export async function copyBy(button, write) {
  await write();
  // The button's usual text, also after two presses in a row.
  const text = (button.dataset.text ??= button.textContent ?? '');
  button.textContent = 'Copied';
  setTimeout(() => { button.textContent = text; }, SAID_FOR);
}

/**
 * Makes buttons with `data-copies` copy the text of the element with that id.
 * @param {(error: unknown) => void} onFailure
 */
export function listenToCopies(onFailure) {
  for (const button of document.querySelectorAll('[data-copies]')) {
    if (!(button instanceof HTMLElement)) continue;
    const text = () => document.getElementById(button.dataset.copies ?? '')?.textContent ?? '';
    button.addEventListener('click', () => copyBy(button, () => navigator.clipboard.writeText(text())).catch(onFailure));
  }
}
