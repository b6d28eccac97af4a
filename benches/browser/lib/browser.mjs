// @ts-check
// Finds a browser based on Chromium and starts it with WebGPU.
import { existsSync } from 'node:fs';
import process from 'node:process';
import puppeteer from 'puppeteer-core';

// Paths of distributions and installers; --browser names any other.
const PLACES = [
  '/usr/bin/chromium',
  '/usr/bin/google-chrome',
  '/usr/bin/google-chrome-stable',
  '/usr/bin/microsoft-edge',
  '/Applications/Google Chrome.app/Contents/MacOS/Google Chrome',
  'C:/Program Files/Google/Chrome/Application/chrome.exe',
  'C:/Program Files (x86)/Microsoft/Edge/Application/msedge.exe',
];

/**
 * @param {{ browser?: string, swiftshader: boolean, headed: boolean }} options
 * @returns {Promise<import('puppeteer-core').Browser>}
 */
export async function launch({ browser, swiftshader, headed }) {
  const executablePath = browser ?? process.env.WGVAE_CHROMIUM ?? PLACES.find((place) => existsSync(place));
  if (!executablePath || !existsSync(executablePath)) {
    throw new Error(`browser: ${executablePath ? `no file ${executablePath}` : 'none found'}; --browser PATH names Chrome, Chromium or Edge`);
  }
  return puppeteer.launch({
    executablePath,
    headless: !headed,
    // A decode on a CPU driver takes minutes, and evaluate() answers only after it.
    protocolTimeout: 0,
    args: flags(swiftshader),
  });
}

// Flags that run all of Chromium on its CPU implementation of Vulkan: with the adapter's flag
// alone, a WebGPU canvas crashes its GPU process.
const SWIFTSHADER = ['--use-webgpu-adapter=swiftshader', '--use-vulkan=swiftshader', '--use-angle=swiftshader', '--enable-features=Vulkan'];

/** @param {boolean} swiftshader */
function flags(swiftshader) {
  const flags = ['--enable-unsafe-webgpu', '--no-first-run', '--disable-background-networking'];
  if (swiftshader) flags.push(...SWIFTSHADER);
  // On Linux, Chromium uses the GPU's Vulkan driver only when told to.
  else if (process.platform === 'linux') flags.push('--enable-features=Vulkan', '--ignore-gpu-blocklist');
  // Chromium's sandbox refuses to start for root, as in containers.
  if (process.getuid?.() === 0) flags.push('--no-sandbox');
  return flags;
}
