onmessage = ({ data }) => run(data).catch((error) => postMessage(`failed: ${error}`));

async function run({ canvas, isShown, flush }) {
  const adapter = await navigator.gpu.requestAdapter();
  const device = await adapter.requestDevice();
  const context = canvas.getContext('webgpu');
  const configure = () => context.configure({ device, format: navigator.gpu.getPreferredCanvasFormat() });
  configure();
  draw(device, context);
  if (flush) setInterval(() => device.queue.submit([]), 0);
  for (let round = 1; ; round++) {
    for (let made = 0; made < 200; made++) device.createCommandEncoder().finish();
    await event();
    collect();
    if (!isShown) {
      if (flush) device.queue.submit([]);
      canvas.transferToImageBitmap().close();
      // Firefox leaves it unconfigured.
      configure();
      draw(device, context);
    }
    postMessage(`round ${round}`);
    await event();
  }
}

function draw(device, context) {
  const encoder = device.createCommandEncoder();
  const view = context.getCurrentTexture().createView();
  encoder.beginRenderPass({ colorAttachments: [{ view, loadOp: 'clear', storeOp: 'store', clearValue: [0, 1, 0, 1] }] }).end();
  device.queue.submit([encoder.finish()]);
}

function event() {
  return new Promise((resolve) => setTimeout(resolve, 10));
}

/** Makes garbage until a collection frees the encoders and command buffers made before. */
function collect() {
  let kept = [];
  for (let made = 0; made < 400000; made++) {
    kept.push({ made });
    if (kept.length > 50000) kept = [];
  }
}
