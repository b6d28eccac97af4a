// @ts-check
// Drag and drop onto the whole page, with folders.

/**
 * @param {HTMLElement} veil element to show while something is dragged over the page
 * @param {(files: File[]) => void} onFiles
 * @param {(error: unknown) => void} onFailure listener for folders and files that cannot be read
 */
export function acceptDrops(veil, onFiles, onFailure) {
  let depth = 0;
  /** @param {DragEvent} event */
  const hasFiles = (event) => event.dataTransfer?.types.includes('Files') ?? false;
  /** @param {number} change */
  const move = (change) => {
    depth = Math.max(0, depth + change);
    veil.hidden = depth === 0;
  };
  addEventListener('dragenter', (event) => hasFiles(event) && move(1));
  addEventListener('dragleave', (event) => hasFiles(event) && move(-1));
  addEventListener('dragover', (event) => hasFiles(event) && event.preventDefault());
  addEventListener('drop', (event) => {
    if (!event.dataTransfer || !hasFiles(event)) return;
    event.preventDefault();
    move(-depth);
    droppedFiles(event.dataTransfer).then(onFiles, onFailure);
  });
}

/**
 * @param {DataTransfer} transfer
 * @returns {Promise<File[]>}
 */
async function droppedFiles(transfer) {
  // Entries exist only until the event ends: take all of them before the first await.
  const entries = [...transfer.items].map((item) => item.webkitGetAsEntry?.());
  const files = [...transfer.files];
  if (!entries.some((entry) => entry?.isDirectory)) return files;
  const lists = await Promise.all(entries.map((entry) => (entry ? filesOf(entry) : [])));
  const all = lists.flat();
  const known = all.filter((file) => /\.(safetensors|npy|latent|json)$/.test(file.name));
  // A folder without any of these may hold pictures.
  return known.length > 0 ? known : all;
}

/**
 * Lists the files of a folder; in the folder of a pipeline, the files of its VAE.
 * @param {FileSystemEntry} entry
 * @returns {Promise<File[]>}
 */
async function filesOf(entry) {
  if (entry.isFile) {
    return [await new Promise((resolve, reject) => /** @type {FileSystemFileEntry} */ (entry).file(resolve, reject))];
  }
  const inside = await entriesOf(/** @type {FileSystemDirectoryEntry} */ (entry));
  const vae = inside.find((other) => other.isDirectory && other.name === 'vae');
  if (vae) return filesOf(vae);
  const lists = await Promise.all(inside.filter((other) => other.isFile).map(filesOf));
  return lists.flat();
}

/**
 * @param {FileSystemDirectoryEntry} folder
 * @returns {Promise<FileSystemEntry[]>}
 */
async function entriesOf(folder) {
  const reader = folder.createReader();
  const all = [];
  // Each call returns some entries, the last one none.
  for (;;) {
    const some = await new Promise((resolve, reject) => reader.readEntries(resolve, reject));
    if (some.length === 0) return all;
    all.push(...some);
  }
}
