// @ts-check
// The page without a network, and as an app: by the service worker in dist/, which the repository
// itself has not.

import { element, setText } from './elements.js';

/**
 * Keeps the page in this browser, as far as that lets it, and says when a newer version has been
 * kept.
 */
export async function keepPage() {
  const registration = await navigator.serviceWorker?.register(new URL('sw.js', document.baseURI)).catch(() => undefined);
  if (!registration) return;
  const offer = () => { element('newer').hidden = !registration.waiting || !navigator.serviceWorker.controller; };
  offer();
  registration.addEventListener('updatefound', () => registration.installing?.addEventListener('statechange', offer));
  element('newer-load').addEventListener('click', () => {
    navigator.serviceWorker.addEventListener('controllerchange', () => location.reload(), { once: true });
    registration.waiting?.postMessage('take over');
  });
  navigator.serviceWorker.addEventListener('message', () => setText('newer-said', 'It is open in other tabs, too: close those first.'));
}
