// The global that in-page/lab.js makes.
declare global {
  const lab: typeof import('./lab.js').lab;
}

export {};
