// A foreign page for package.test.mjs to bundle: decodes on the page, or with `?worker` in a
// worker, on the `device` of the address.
import * as here from 'wgvae';
import * as there from 'wgvae/worker';

const query = new URLSearchParams(location.search);
const folder = query.get('model');
const { createDecoder } = query.has('worker') ? there : here;
const threads = query.has('threads') ? Number(query.get('threads')) : undefined;
const decoder = await createDecoder({ device: query.get('device'), threads, model: `${folder}diffusion_pytorch_model.safetensors`, config: `${folder}config.json` });
const image = await decoder.decode(`${folder}latents.safetensors`, { output: 'image-data' });
await decoder.destroy();
document.documentElement.dataset.adapter = decoder.info.adapter.name;
document.title = `${image.width}x${image.height}`;
