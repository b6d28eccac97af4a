// @ts-check
// The page: shows the state of the session, and passes the user's wishes to it. It runs no GPU or
// wasm code, and nothing that takes long.

import { WgvaeError } from '../src/worker.js';
import { CompareTiles } from './compare-tiles.js';
import { copyBy, listenToCopies } from './copy.js';
import { acceptDrops } from './drop.js';
import { element, setText } from './elements.js';
import { FIRST_LOOK, LATENTS, listenToExamples, SELFTEST } from './examples.js';
import { Explore } from './explore.js';
import { foreignAddresses, mayFetch } from './foreign.js';
import { GpuTest } from './gpu-test.js';
import { listKnown } from './known.js';
import { latentsFile } from './latents-file.js';
import { firstLook } from './linear.js';
import { Link, shareOrFail } from './link.js';
import { keepPage } from './offline.js';
import { Own } from './own-report.js';
import { acceptPastes } from './paste.js';
import { takeFiles } from './picker.js';
import { Picture } from './picture.js';
import { PlayerFiles } from './player-files.js';
import { Player } from './player.js';
import { absolute, isPrecision, readQuery } from './query.js';
import * as session from './session.js';
import { showSource } from './source-link.js';
import { listen } from './tell.js';
import { View } from './view.js';
import { Zoom } from './zoom.js';

/** @typedef {import('./news.js').News} News */

const MIB = 1 << 20;

/** States in which no work is in progress. @type {import('./news.js').State[]} */
const RESTING = ['idle', 'asking', 'ready', 'done', 'failed'];

/** Size of the demo's picture, pixels. */
const DEMO_SIZE = { width: 512, height: 512 };

const view = new View();
const picture = new Picture();
const player = new Player(picture, fail);
const playerFiles = new PlayerFiles(player, save, fail);
const own = new Own();
const query = readQuery(location.search);
const link = new Link(query, (error) => fail('copy', wordsOf(error)));

const tiles = new CompareTiles(picture, query.tiling, (wanted, tiling) => {
  link.set({ tiling });
  view.clearProblem();
  view.clearNotices('decode');
  session.compare(wanted);
});
const explore = new Explore(query.plan, (plan) => link.set({ plan }));

const gpuTest = new GpuTest(
  () => ({ wgvae: own.version, browser: navigator.userAgent, adapter }),
  SELFTEST,
  save,
  (error) => fail(error instanceof WgvaeError ? error.code : 'unknown', wordsOf(error)),
);
/**
 * Adapter of the models, once there is one.
 * @type {import('../src/index.js').AdapterInfo | undefined}
 */
let adapter;

/** Size of the clip whose frames are arriving. @type {import('./news.js').Size | undefined} */
let clipSize;

/** Latents of the last encode. @type {File | undefined} */
let latents;

/** True until a decode that starts without a click has begun. */
let isToDecode = false;
/** True once the first picture is shown, or cannot be shown: other work may begin. */
let isAtRest = false;

/** @param {News} message */
function receive(message) {
  switch (message.type) {
    case 'module':
      own.version = message.version;
      view.module(message, query.family);
      explore.offer(message.families);
      break;
    case 'outcomes':
      message.outcomes.forEach((outcome) => own.add(outcome));
      view.outcomes(message.outcomes);
      element('export-share').hidden = !navigator.canShare?.({ files: [own.file()] });
      break;
    case 'model':
      adapter = message.info?.adapter ?? adapter;
      if (message.info) picture.made(message.info);
      // falls through
    case 'input':
      if (message.type === 'input' && !message.isDemo && message.shape === undefined) picture.endPreview();
      if (message.isFile) link.takeFiles(message.type);
      if (message.isFile === false) link.leaveFiles(message.type);
      view.receive(message);
      break;
    case 'latents':
      keepLatents(latentsFile(message.name, message.latents));
      break;
    case 'preview':
      showPreview(message.bitmap, message.size);
      break;
    case 'original':
      keepLatents(undefined);
      player.close();
      tiles.close();
      picture.showOriginal(message.bitmap, message.name);
      break;
    case 'picture':
      if (message.psnr === undefined) keepLatents(undefined);
      player.close();
      tiles.close();
      picture.show(message.bitmap, message.name, message.psnr);
      break;
    case 'comparison':
      player.close();
      view.compared();
      tiles.show(message.name, message.comparison);
      break;
    case 'clip':
      if (!message.isRoundTrip) keepLatents(undefined);
      tiles.close();
      clipSize = message.size;
      picture.showClip(message.name, message.isRoundTrip);
      player.open(message);
      playerFiles.open();
      break;
    case 'frame':
      player.add(message);
      if (message.psnr !== undefined) picture.sayLikeness(message.psnr);
      break;
    case 'state':
      view.receive(message);
      rest(message.state);
      gpuTest.allow(RESTING.includes(message.state));
      if (clipSize && ['ready', 'idle', 'done', 'failed'].includes(message.state)) endClip(clipSize, message.state === 'done');
      break;
    default:
      view.receive(message);
  }
}

/** @param {File | undefined} file encoded latents to offer for saving */
function keepLatents(file) {
  latents = file;
  element('download-latents').hidden = !file;
}

/**
 * Begins work that can wait, after the first picture, so that it does not delay it.
 * @param {import('./news.js').State} state
 */
function rest(state) {
  if (['decoding', 'done', 'failed'].includes(state)) isToDecode = false;
  if (isAtRest || isToDecode || !RESTING.includes(state)) return;
  isAtRest = true;
  showSource();
  explore.begin();
  keepPage();
}

/**
 * Ends a clip. After an error or a cancel, its frames so far stay.
 * @param {import('./news.js').Size} size
 * @param {boolean} isWhole
 */
function endClip(size, isWhole) {
  clipSize = undefined;
  player.finish(isWhole);
  playerFiles.finish(size);
}

/** @returns {import('./news.js').Settings} */
function settings() {
  const budget = Number(element('budget', HTMLInputElement).value);
  const precision = element('precision', HTMLSelectElement).value;
  return {
    precision: isPrecision(precision) ? precision : 'auto',
    budget: budget > 0 ? Math.round(budget * MIB) : undefined,
    family: element('family', HTMLSelectElement).value || query.family,
    unscaled: element('unscaled', HTMLInputElement).checked,
    index: Math.max(0, Math.round(Number(element('index', HTMLInputElement).value)) - 1),
  };
}

/** @param {File} file */
function save(file) {
  const anchor = document.createElement('a');
  anchor.href = URL.createObjectURL(file);
  anchor.download = file.name;
  anchor.click();
  // The download holds its own reference by then.
  setTimeout(() => URL.revokeObjectURL(anchor.href), 10_000);
}

function listenToButtons() {
  element('decode').addEventListener('click', () => {
    view.clearNotices('decode');
    session.decode();
  });
  element('cancel').addEventListener('click', () => session.cancel());
  element('download').addEventListener('click', () => {
    shownFile().then(save, (error) => fail('canvas', wordsOf(error)));
  });
  element('download-latents').addEventListener('click', () => latents && save(latents));
  element('problem-unscaled').addEventListener('click', () => {
    const unscaled = element('unscaled', HTMLInputElement);
    unscaled.checked = true;
    unscaled.dispatchEvent(new Event('change'));
    session.decode();
  });
  const copy = element('copy-picture');
  // Browsers want the promise within the event.
  copy.addEventListener('click', () => copyBy(copy, () => navigator.clipboard.write([new ClipboardItem({ 'image/png': shownFile() })])).catch((error) => fail('copy', wordsOf(error))));
  element('ask').addEventListener('close', () => {
    if (document.body.dataset.state !== 'asking') return;
    session.answer(element('ask', HTMLDialogElement).returnValue === 'yes');
  });
  element('cache-clear').addEventListener('click', () => {
    setText('cache-size', 'clearing');
    session.forgetKept();
  });
  element('export').addEventListener('click', () => save(own.file()));
  element('export-share').addEventListener('click', () => shareOrFail({ title: 'A memory report of wgvae', files: [own.file()] }, (error) => fail('copy', wordsOf(error))));
  for (const id of ['precision', 'budget', 'family', 'unscaled', 'index']) {
    element(id).addEventListener('change', () => {
      query.family = undefined;
      view.settings(settings());
      view.clearNotices('model');
      session.change(settings());
      const { precision, family, unscaled, index } = settings();
      link.set({ precision, family, unscaled, index: index + 1, budget: Number(element('budget', HTMLInputElement).value) });
    });
  }
}

function listenToInputs() {
  takeFiles('open-file', (files) => openFiles(files));
  takeFiles('model-file', (files) => openFiles(files, 'model'));
  takeFiles('input-file', (files) => openFiles(files, 'input'));
  listenToAddress('model', openModel);
  listenToAddress('input', openInput);
  acceptPastes({ onFiles: openDropped, onAddress: (kind, url) => (kind === 'model' ? openModel(url) : openInput(url)) });
  listKnown(element('known'), openModel);
  listenToCopies((error) => fail('copy', wordsOf(error)));
  listenToExamples(openExample);
  acceptDrops(element('drop'), openDropped, (error) => fail('io', `dropped files cannot be read: ${wordsOf(error)}`));
}

/** @param {import('./examples.js').Example} example */
function openExample(example) {
  // On a phone it is above the buttons.
  element('frame').scrollIntoView({ block: 'nearest' });
  view.clearProblem();
  view.clearNotices('model');
  session.open(example, true);
  link.set({ model: undefined, config: undefined, latents: undefined, index: undefined });
  if (example === LATENTS) showFirstLook();
}

/** Shows the demo's latents until they are decoded. The page works without it. */
async function showFirstLook() {
  const opened = picture.shown;
  const bitmap = await firstLook(FIRST_LOOK).catch(() => undefined);
  // Not if something else is shown by now.
  if (bitmap && picture.shown === opened) showPreview(bitmap, DEMO_SIZE);
  else bitmap?.close();
}

/**
 * @param {ImageBitmap} bitmap a pixel for each latent
 * @param {import('./news.js').Size} size of their picture
 */
function showPreview(bitmap, size) {
  keepLatents(undefined);
  player.close();
  tiles.close();
  picture.showPreview(bitmap, size);
}

/** @param {string} url an address, or a name on the hub */
function openModel(url) {
  view.clearProblem();
  view.clearNotices('model');
  session.open({ model: { urls: [url] } });
  showStatus();
  link.set({ model: [url], config: undefined });
}

/** @param {string} url address of latents, a picture or a video */
function openInput(url) {
  view.clearProblem();
  view.clearNotices('model');
  session.open({ input: { url } });
  showStatus();
  link.set({ latents: url, index: undefined });
}

/** Returns the shown picture as a PNG file. */
async function shownFile() {
  return player.isOpen ? player.file() : picture.file();
}

/** @param {unknown} error */
function wordsOf(error) {
  return error instanceof Error ? error.message : String(error);
}

/**
 * Shows an error of the page itself.
 * @param {string} code
 * @param {string} message
 */
function fail(code, message) {
  view.problem({ code, message });
}

/** @param {File[]} files */
function openDropped(files) {
  const isReport = (/** @type {File} */ file) => file.name.endsWith('.json') && !/(config|index)\.json$/.test(file.name);
  const others = files.filter((file) => !isReport(file));
  if (others.length < files.length) setText('said', 'Memory reports have a page of their own: drop them there.');
  // A folder without usable files: opening nothing shows the error.
  if (others.length > 0 || files.length === 0) openFiles(others);
}

/**
 * @param {File[]} files
 * @param {'model' | 'input'} [kind]
 */
function openFiles(files, kind) {
  view.clearProblem();
  view.clearNotices('model');
  session.openFiles(files, kind);
  showStatus();
}

/** Scrolls to the status, which answers a choice: on a phone it is far above what was clicked. */
function showStatus() {
  element('status').scrollIntoView({ block: 'nearest' });
}

/**
 * @param {'model' | 'input'} kind
 * @param {(url: string) => void} onUrl
 */
function listenToAddress(kind, onUrl) {
  const input = element(`${kind}-url`, HTMLInputElement);
  element(`${kind}-form`).addEventListener('submit', (event) => {
    event.preventDefault();
    const url = absolute(input.value);
    if (url) onUrl(url);
    else fail('input', `"${input.value}" is no address`);
  });
}

/**
 * Opens the files of the link, or the demo, which it decodes at once. Asks the visitor before it
 * opens other sites, because somebody else wrote the link.
 */
async function openFirst() {
  const foreign = foreignAddresses(query);
  if (foreign.length > 0 && !(await mayFetch(foreign))) {
    link.set({ model: undefined, config: undefined, latents: undefined });
    return;
  }
  const model = query.model?.length ? { urls: query.model, config: query.config } : LATENTS.model;
  const input = query.latents ? { url: query.latents, index: (query.index ?? 1) - 1 } : undefined;
  isToDecode = model === LATENTS.model && !input;
  session.open(isToDecode ? LATENTS : { model, input }, isToDecode);
  if (isToDecode) showFirstLook();
}

function start() {
  element('precision', HTMLSelectElement).value = query.precision ?? 'auto';
  element('budget', HTMLInputElement).value = query.budget ? String(query.budget) : '';
  element('unscaled', HTMLInputElement).checked = query.unscaled ?? false;
  view.settings(settings());
  listenToButtons();
  listenToInputs();
  new Zoom();
  listen(receive);
  session.start(settings());
  openFirst();
}

start();
