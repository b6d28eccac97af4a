// The same app for bundlers that do not see the package's module: module and worker script lie
// beside the bundle.
import * as here from 'wgvae';
import * as there from 'wgvae/worker';

const query = new URLSearchParams(location.search);
const folder = new URL(query.get('model'), location.href).href;
const files = { model: `${folder}diffusion_pytorch_model.safetensors`, config: `${folder}config.json`, wasm: new URL('./wgvae_bg.wasm', import.meta.url) };
const decoder = query.has('worker')
  ? await there.createDecoder({ ...files, worker: new Worker(new URL('./worker-host.js', import.meta.url), { type: 'module' }) })
  : await here.createDecoder(files);
const image = await decoder.decode(`${folder}latents.safetensors`, { output: 'image-data' });
await decoder.destroy();
document.title = `${image.width}x${image.height}`;
