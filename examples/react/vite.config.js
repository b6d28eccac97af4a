// The two lines of docs/guide/browser-bundlers.md.
export default { optimizeDeps: { exclude: ['wgvae'] }, worker: { format: 'es' } };
