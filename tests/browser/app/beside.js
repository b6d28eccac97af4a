// The same app for bundlers that do not see the package's modules: modules and worker script lie
// beside the bundle.
import * as here from 'wgvae';
import * as there from 'wgvae/worker';

const query = new URLSearchParams(location.search);
const folder = new URL(query.get('model'), location.href).href;
const wasm = { webgpu: new URL('./wgvae_bg.wasm', import.meta.url), cpu: new URL('./wgvae_cpu_bg.wasm', import.meta.url) };
const files = { device: query.get('device'), model: `${folder}diffusion_pytorch_model.safetensors`, config: `${folder}config.json`, wasm };
const decoder = query.has('worker')
  ? await there.createDecoder({ ...files, worker: new Worker(new URL('./worker-host.js', import.meta.url), { type: 'module' }) })
  : await here.createDecoder(files);
const image = await decoder.decode(`${folder}latents.safetensors`, { output: 'image-data' });
await decoder.destroy();
document.title = `${image.width}x${image.height}`;
