// @ts-check
// The link to the source: the address in the package's package.json.

import { element } from './elements.js';

/** Shows the link if package.json has an address. */
export async function showSource() {
  const answer = await fetch(new URL('../package.json', import.meta.url)).catch(() => undefined);
  const { repository } = answer?.ok ? await answer.json() : {};
  const address = (repository?.url ?? repository)?.replace(/^git\+|\.git$/g, '');
  if (!/^https?:/.test(address ?? '')) return;
  Object.assign(element('source', HTMLAnchorElement), { href: address, hidden: false });
}
