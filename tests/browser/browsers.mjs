// @ts-check
// Chromium and Firefox behind one interface, each with a temporary profile.
//
// Chromium decodes on its own SwiftShader, the same on every machine: Dawn and Tint, f32, no f16.
// Firefox decodes on the machine's Vulkan driver: wgpu and naga.

import { mkdtemp, mkdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

import puppeteer from 'puppeteer-core';

/** @typedef {'chromium' | 'firefox'} Kind */

/**
 * @type {Record<Kind, { variable: string, fallback: string, options:
 * import('puppeteer-core').LaunchOptions }>}
 */
const BROWSERS = {
  chromium: {
    variable: 'WGVAE_CHROMIUM',
    fallback: '/usr/bin/chromium',
    options: {
      browser: 'chrome',
      args: [
        '--enable-unsafe-webgpu',
        '--use-webgpu-adapter=swiftshader',
        // Without these three, a canvas with WebGPU crashes the GPU process.
        '--use-vulkan=swiftshader',
        '--use-angle=swiftshader',
        '--enable-features=Vulkan',
        '--no-sandbox',
        '--no-first-run',
        // No requests of the browser's own: tests use this machine only.
        '--disable-background-networking',
        '--disable-component-update',
        '--disable-sync',
        '--disable-quic',
      ],
    },
  },
  firefox: {
    variable: 'WGVAE_FIREFOX',
    fallback: '/usr/bin/firefox-esr',
    options: {
      browser: 'firefox',
      extraPrefsFirefox: {
        'dom.webgpu.enabled': true,
        'dom.webgpu.workers.enabled': true,
        'gfx.webgpu.ignore-blocklist': true,
      },
    },
  },
};

/**
 * Where Mesa keeps what it has compiled, for all browsers that run on it: compiling takes ten times
 * as long as reading it there.
 */
const COMPILED = fileURLToPath(new URL('../../target/browser/mesa/', import.meta.url));

/** Browsers to test: both, unless WGVAE_BROWSER names one. */
export const KINDS = /** @type {Kind[]} */ (['chromium', 'firefox']).filter((kind) => (process.env.WGVAE_BROWSER ?? kind) === kind);

/** Signals that we send to a browser that does not end in time. */
const TOLD = ['SIGTERM', 'SIGKILL'];

/**
 * True if shaders have f16. SwiftShader has none; tools/chromium_lavapipe makes a Chromium on
 * another driver, which has.
 * @param {Kind} kind
 */
export function hasF16(kind) {
  return kind === 'firefox' || process.env.WGVAE_CHROMIUM_F16 === '1';
}

/**
 * @typedef {{ kind: Kind, browser: import('puppeteer-core').Browser, close: () => Promise<void> }}
 * Running
 */

/** @type {Map<Kind, Promise<Running>>} */
const running = new Map();

/**
 * Returns the browser that all tests of this process share. Starts it on first use, and again if it
 * has crashed.
 * @param {Kind} kind
 * @returns {Promise<Running>}
 */
export async function shared(kind) {
  const known = await running.get(kind);
  if (known?.browser.connected) return known;
  await known?.close();
  const started = launch(kind);
  running.set(kind, started);
  return started;
}

/** Closes the shared browsers. */
export async function closeShared() {
  for (const [kind, started] of running) {
    running.delete(kind);
    await (await started).close();
  }
}

/** Removes a folder to which a browser that is ending may still write. @param {string} folder */
function removed(folder) {
  return rm(folder, { recursive: true, force: true, maxRetries: 5, retryDelay: 200 });
}

/**
 * Starts a browser. `close` ends it and removes its profile.
 * @param {Kind} kind
 * @returns {Promise<Running>}
 */
export async function launch(kind) {
  const { variable, fallback, options } = BROWSERS[kind];
  const home = await mkdtemp(join(tmpdir(), `wgvae-${kind}-`));
  // Mesa itself makes no folders above the last.
  await mkdir(COMPILED, { recursive: true });
  const [profile, runtime] = [join(home, 'profile'), join(home, 'runtime')];
  await Promise.all([profile, runtime].map((folder) => mkdir(folder, { mode: 0o700 })));
  // Firefox needs these two folders to start, and neither browser may find the user's own files.
  const env = { ...process.env, HOME: home, XDG_RUNTIME_DIR: runtime, MESA_SHADER_CACHE_DIR: COMPILED };
  const executablePath = process.env[variable] ?? fallback;
  const browser = await puppeteer
    .launch({ ...options, executablePath, userDataDir: profile, env, headless: true, timeout: 180_000, protocolTimeout: 600_000 })
    .catch(async (cause) => {
      await removed(home);
      throw new Error(`${kind} could not be started from ${executablePath} (${variable} names another)`, { cause });
    });
  // After a crash, tests fail in many ways that do not tell the cause.
  browser.process()?.once('exit', (code, signal) => {
    if (signal !== null ? !TOLD.includes(signal) : code !== 0) console.log(`${kind} ended by itself (${signal ?? `exit code ${code}`})`);
  });
  const close = async () => {
    // It may have crashed; its files must be removed anyway.
    await browser.close().catch(() => {});
    await removed(home);
  };
  return { kind, browser, close };
}
