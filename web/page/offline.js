// @ts-check
// The page without a network, and as an app, by the service worker. Only dist/ has it, not the
// repository.

import { element, setText } from './elements.js';

/** Caches the page if the browser allows it, and tells when a newer version is cached. */
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
