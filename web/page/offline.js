// @ts-check
// The page without a network, and as an app: by the service worker in dist/, which the repository itself has not.

/**
 * Opens the newest version where this is an older one and no other tab has any open. Called before there is anything to lose.
 */
export async function takeNewest() {
  const registration = await navigator.serviceWorker?.getRegistration().catch(() => undefined);
  if (!registration?.waiting) return;
  navigator.serviceWorker.addEventListener('controllerchange', () => location.reload(), { once: true });
  registration.waiting.postMessage('take over');
}

/** Keeps the page in this browser, as far as that lets it. */
export async function keepPage() {
  await navigator.serviceWorker?.register(new URL('sw.js', document.baseURI)).catch(() => undefined);
}
