// @ts-check
// Text into the clipboard, and a button that says for a moment that it is there.

/** Milliseconds for which a button says so. */
const SAID_FOR = 2000;

/**
 * @param {HTMLElement} button which was pressed
 * @param {() => Promise<void>} write into the clipboard
 */
export async function copyBy(button, write) {
  await write();
  // What it says else, also if it is pressed twice.
  const text = (button.dataset.text ??= button.textContent ?? '');
  button.textContent = 'Copied';
  setTimeout(() => { button.textContent = text; }, SAID_FOR);
}

/**
 * Buttons with `data-copies` copy the text of the element with that id.
 * @param {(error: unknown) => void} onFailure
 */
export function listenToCopies(onFailure) {
  for (const button of document.querySelectorAll('[data-copies]')) {
    if (!(button instanceof HTMLElement)) continue;
    const text = document.getElementById(button.dataset.copies ?? '')?.textContent ?? '';
    button.addEventListener('click', () => copyBy(button, () => navigator.clipboard.writeText(text)).catch(onFailure));
  }
}
