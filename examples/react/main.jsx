// A component that decodes a file of latents. Its model, TAESD for SD 1.x, comes from the Hugging
// Face Hub; `?model=` and `?config=` in the page's address name others.

import { StrictMode, useEffect, useRef, useState } from 'react';
import { createRoot } from 'react-dom/client';
import { useDecoder } from 'wgvae/react';

const query = new URLSearchParams(location.search);
const OPTIONS = { model: query.get('model') ?? 'taesd', config: query.get('config') ?? undefined, cache: true };

function App() {
  const [latents, setLatents] = useState(query.get('latents') ?? undefined);
  return (
    <main>
      <h1>Latents in a React component</h1>
      <label>Latents (.safetensors, .npy): <input type="file" onChange={({ target }) => setLatents(target.files[0])} /></label>
      <Picture latents={latents} />
    </main>
  );
}

function Picture({ latents }) {
  const { decoder, progress, error } = useDecoder(OPTIONS);
  const [problem, setProblem] = useState();
  const canvas = useRef(null);
  useEffect(() => {
    setProblem(undefined);
    if (!decoder || !latents) return;
    // Of several files, only the last counts.
    decoder.decode(latents, { canvas: canvas.current, replace: true }).catch((error) => {
      if (error.name !== 'AbortError') setProblem(error);
    });
  }, [decoder, latents]);
  const said = error ?? problem;
  return (
    <figure>
      <canvas ref={canvas} />
      <figcaption role="status">{said ? said.message : progress && `${progress.phase}: ${progress.done} of ${progress.total}`}</figcaption>
    </figure>
  );
}

createRoot(document.getElementById('app')).render(<StrictMode><App /></StrictMode>);
