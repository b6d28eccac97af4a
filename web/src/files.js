// @ts-check
// Small files in the origin private file system (OPFS), in the package's folders. It does not
// depend on their contents.

/** Name of the folder that holds all of the package's folders. */
const ROOT = 'wgvae';

/**
 * Opens the folder `name` inside the package's folder. Returns undefined if the browser stores no
 * files (some private windows), or if there is no such folder.
 * @param {string} name
 * @param {boolean} create
 * @returns {Promise<FileSystemDirectoryHandle | undefined>}
 */
export async function openFolder(name, create) {
  try {
    return await (await openRoot(create)).getDirectoryHandle(name, { create });
  } catch {
    return undefined;
  }
}

/** @param {boolean} create */
async function openRoot(create) {
  const root = await navigator.storage.getDirectory();
  return root.getDirectoryHandle(ROOT, { create });
}

/** Returns a name for a file or folder, made of any text. @param {string} text */
export async function nameFor(text) {
  const digest = await crypto.subtle.digest('SHA-256', new TextEncoder().encode(text));
  return Array.from(new Uint8Array(digest), (byte) => byte.toString(16).padStart(2, '0')).join('');
}

/** Lists the folders inside `folder`. @param {FileSystemDirectoryHandle} folder */
export async function foldersIn(folder) {
  const folders = [];
  for await (const entry of entriesOf(folder)) if (entry.kind === 'directory') folders.push(entry);
  return folders;
}

/** Lists the names of the folders inside the package's folder. */
export async function folderNames() {
  const ours = await openRoot(false).catch(() => undefined);
  return ours ? (await foldersIn(ours)).map(({ name }) => name) : [];
}

/** Lists the names of the entries in `folder`. @param {FileSystemDirectoryHandle} folder */
export async function entryNames(folder) {
  const names = [];
  for await (const { name } of entriesOf(folder)) names.push(name);
  return names;
}

/**
 * @param {FileSystemDirectoryHandle} folder
 * @param {string} name
 * @returns {Promise<File | undefined>}
 */
export async function readFile(folder, name) {
  try {
    return await (await folder.getFileHandle(name)).getFile();
  } catch {
    return undefined;
  }
}

/**
 * Writes a whole file, or leaves none behind.
 * @param {FileSystemDirectoryHandle} folder
 * @param {string} name
 * @param {Uint8Array<ArrayBuffer> | string} bytes
 */
export async function writeFile(folder, name, bytes) {
  const handle = await folder.getFileHandle(name, { create: true });
  try {
    if ('createWritable' in handle) {
      const stream = await handle.createWritable();
      await stream.write(bytes);
      await stream.close();
    } else {
      await writeAtOnce(handle, bytes);
    }
  } catch (error) {
    await folder.removeEntry(name).catch(() => {});
    throw error;
  }
}

/**
 * Writes a file in Safari before 26, which can write only like this, and only in workers.
 * @param {any} handle
 * @param {Uint8Array<ArrayBuffer> | string} bytes
 */
async function writeAtOnce(handle, bytes) {
  const file = await handle.createSyncAccessHandle();
  try {
    file.truncate(0);
    file.write(typeof bytes === 'string' ? new TextEncoder().encode(bytes) : bytes);
  } finally {
    file.close();
  }
}

/**
 * Removes the folder `name` inside the package's folder, with its contents. A missing folder is no
 * error.
 * @param {string} name
 */
export async function removeFolder(name) {
  // A runtime without a file system of its own has none.
  if (!globalThis.navigator?.storage) return;
  try {
    const ours = await openRoot(false);
    await ours.removeEntry(name, { recursive: true });
  } catch (error) {
    if (!isMissing(error)) throw error;
  }
}

/**
 * Returns bytes and number of the files in the folder `name` inside the package's folder, with all
 * subfolders.
 * @param {string} name
 */
export async function folderUsage(name) {
  return usageOf(await openFolder(name, false));
}

/**
 * Returns the same for an open folder.
 * @param {FileSystemDirectoryHandle | undefined} folder
 */
export async function usageOf(folder) {
  const usage = { bytes: 0, entries: 0 };
  if (folder) await addUsage(folder, usage);
  return usage;
}

/**
 * @param {FileSystemDirectoryHandle} folder
 * @param {{ bytes: number, entries: number }} usage
 */
async function addUsage(folder, usage) {
  try {
    for await (const entry of entriesOf(folder)) {
      if (entry.kind === 'directory') await addUsage(entry, usage);
      else await addFile(entry, usage);
    }
  } catch (error) {
    // Another tab may clear the cache meanwhile.
    if (!isMissing(error)) throw error;
  }
}

/**
 * @param {FileSystemFileHandle} handle
 * @param {{ bytes: number, entries: number }} usage
 */
async function addFile(handle, usage) {
  try {
    usage.bytes += (await handle.getFile()).size;
    usage.entries += 1;
  } catch (error) {
    if (!isMissing(error)) throw error;
  }
}

/**
 * Returns the iterator of a folder, which TypeScript's type library does not know everywhere.
 * @param {FileSystemDirectoryHandle} folder
 * @returns {AsyncIterable<FileSystemDirectoryHandle | FileSystemFileHandle>}
 */
function entriesOf(folder) {
  return /** @type {any} */ (folder).values();
}

/** @param {unknown} error */
export function isMissing(error) {
  return error instanceof DOMException && (error.name === 'NotFoundError' || error.name === 'SecurityError');
}

/** @param {unknown} error */
export function isQuota(error) {
  return error instanceof DOMException && error.name === 'QuotaExceededError';
}
