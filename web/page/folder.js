// @ts-check
// Saving of frames as files in a folder that the user chooses, if the browser supports that.

/** True if the browser supports it. */
export function hasFolders() {
  return 'showDirectoryPicker' in globalThis;
}

/**
 * Asks for a folder and writes all frames. A failed write leaves no partial file.
 * @param {readonly Blob[]} frames
 * @param {{ nameOf: (index: number) => string, onFrame: (done: number) => void }} options
 * @returns {Promise<boolean>} true if the user chose a folder
 */
export async function saveIntoFolder(frames, { nameOf, onFrame }) {
  /** @type {FileSystemDirectoryHandle} */
  let folder;
  try {
    folder = await /** @type {any} */ (globalThis).showDirectoryPicker({ id: 'wgvae-frames', mode: 'readwrite' });
  } catch (error) {
    // The user closed the dialog.
    if (error instanceof DOMException && error.name === 'AbortError') return false;
    throw error;
  }
  for (const [index, frame] of frames.entries()) {
    await write(folder, nameOf(index), frame);
    onFrame(index + 1);
  }
  return true;
}

/**
 * @param {FileSystemDirectoryHandle} folder
 * @param {string} name
 * @param {Blob} content
 */
async function write(folder, name, content) {
  const isNew = await folder.getFileHandle(name).then(() => false, () => true);
  const file = await folder.getFileHandle(name, { create: true });
  try {
    const stream = await file.createWritable();
    await stream.write(content).catch(async (error) => {
      await stream.abort().catch(() => {});
      throw error;
    });
    // Until here, the old file is unchanged.
    await stream.close();
  } catch (cause) {
    if (isNew) await folder.removeEntry(name).catch(() => {});
    throw new Error(`${name}: ${cause instanceof Error ? cause.message : cause}`, { cause });
  }
}
