// The global that in-page/lab.js defines.
declare global {
  const lab: typeof import('./lab.js').lab;
}

export {};
