// @ts-check
// Small files in the origin private file system (OPFS), in folders of ours. Knows nothing about
// what is in them.

/** The folder that holds all of ours. */
const ROOT = 'wgvae';

/**
 * The folder `name` inside ours, or undefined where the browser keeps no files (private windows of
 * some) or there is no such folder.
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

/** A name for the file or folder of what is called by any text. @param {string} text */
export async function nameFor(text) {
  const digest = await crypto.subtle.digest('SHA-256', new TextEncoder().encode(text));
  return Array.from(new Uint8Array(digest), (byte) => byte.toString(16).padStart(2, '0')).join('');
}

/** The folders inside `folder`. @param {FileSystemDirectoryHandle} folder */
export async function foldersIn(folder) {
  const folders = [];
  for await (const entry of entriesOf(folder)) if (entry.kind === 'directory') folders.push(entry);
  return folders;
}

/** Names of the folders inside ours. */
export async function folderNames() {
  const ours = await openRoot(false).catch(() => undefined);
  return ours ? (await foldersIn(ours)).map(({ name }) => name) : [];
}

/** Names of what is in `folder`. @param {FileSystemDirectoryHandle} folder */
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
 * Safari before 26 writes only like this, and only in workers.
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
 * Removes the folder `name` inside ours with all that is in it. No folder is fine, too.
 * @param {string} name
 */
export async function removeFolder(name) {
  try {
    const ours = await openRoot(false);
    await ours.removeEntry(name, { recursive: true });
  } catch (error) {
    if (!isMissing(error)) throw error;
  }
}

/**
 * Bytes and number of the files in the folder `name` inside ours and in the folders below it.
 * @param {string} name
 */
export async function folderUsage(name) {
  return usageOf(await openFolder(name, false));
}

/**
 * The same of a folder that is open.
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
 * The type library of TypeScript does not know the iterator everywhere.
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
