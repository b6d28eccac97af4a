// What somebody else's page would do, to be bundled by package.test.mjs.
import { createDecoder } from 'wgvae';

const query = new URLSearchParams(location.search);
const folder = query.get('model');
const decoder = await createDecoder({ model: `${folder}diffusion_pytorch_model.safetensors`, config: `${folder}config.json` });
const image = await decoder.decode(`${folder}latents.safetensors`, { output: 'image-data' });
await decoder.destroy();
document.title = `${image.width}x${image.height}`;
