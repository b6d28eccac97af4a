/// <reference lib="esnext.disposable" />
// Types of the package. Axes: n pictures, c channels, h rows, w columns. Memory is in bytes, time
// in seconds and lengths in pixels, unless a comment says otherwise. Plans and reports have the
// field names of the command line's JSON output.

/**
 * Bytes of a file: a file that the user chose or any other Blob, an address (http, https, blob; in
 * Node also `file:`, unless there is a `fetch`), or memory. Files are read in slices, addresses
 * with HTTP Range requests. Relative addresses start from the page, with `wgvae/worker`, too.
 */
export type FileInput = Blob | URL | string | ArrayBuffer | Uint8Array;

/**
 * Source of the .wasm module: an address, a request, a response, its bytes, or the compiled module.
 */
export type WasmSource = URL | string | Request | Response | BufferSource | WebAssembly.Module;

/**
 * Sources of the modules: for WebGPU, and for the CPU with one thread and with several. A source by
 * itself is that of the module for WebGPU.
 */
export type WasmSources = WasmSource | { webgpu?: WasmSource; cpu?: WasmSource; threads?: WasmSource };

/**
 * Opens a model for decoding, gets a device and loads the decoder's weights onto it.
 *
 * Rejects with a {@link WgvaeError}, with `signal.reason` after an abort. The code is `input` if
 * the model has no decoder.
 */
export function createDecoder(options: ModelOptions): Promise<Decoder>;

/**
 * Opens a model for encoding, gets a device and loads the encoder's weights onto it. Rejects
 * like {@link createDecoder}, with code `input` if the model has no encoder.
 */
export function createEncoder(options: ModelOptions): Promise<Encoder>;

/**
 * Opens a model for decoding and encoding on one device. Decodes and encodes run one after the
 * other.
 */
export function createVae(options: ModelOptions): Promise<Vae>;

export interface HubOptions {
  /** Branch, tag or commit. Default: `main`. */
  revision?: string;
  /** Folder in the repository. Default: `vae` if the repository is a pipeline, else the root. */
  subfolder?: string;
  /**
   * Name of a .safetensors file in that folder. Default: diffusers' weights, else the only
   * .safetensors file.
   */
  file?: string;
  /**
   * Variant of the weights: the files marked fp16, where the repository has both. Default: the
   * plain ones.
   */
  variant?: 'fp16';
  /**
   * Access token, for repositories that need one. It is sent to the hub, never to an address that
   * the hub redirects to. Everybody who reads your page can read it.
   */
  token?: string;
  /** Address of another hub. Default: `https://huggingface.co`. */
  endpoint?: string;
  /**
   * Function that makes the requests, instead of `fetch` of {@link ModelOptions}. Its requests to
   * the hub's own addresses carry the token.
   */
  fetch?: typeof fetch;
}

/** Name of a model on a hub. Nothing is requested before the model is opened. */
export interface HubModel {
  readonly id: string;
  readonly revision: string;
}

/**
 * Names a model of the Hugging Face Hub, `owner/name`. The model's files are the ones that `wgvae
 * --model hf:owner/name` chooses. Throws `input` if `id` cannot be a name. Opening the model
 * rejects with `http` and a `status` if the hub refuses the request, and with `format` if the
 * repository has no file of a model.
 */
export function hub(id: string, options?: HubOptions): HubModel;

/**
 * Tells what this browser or runtime can do, without a model, a device or a download. Never
 * rejects: a `reason` takes the place of an error. That an adapter exists does not promise that a
 * model fits its memory.
 */
export function isSupported(options?: SupportOptions): Promise<Support>;

export type SupportOptions = Pick<DeviceOptions, 'gpu' | 'powerPreference'>;

/** Result of {@link isSupported}. */
export interface Support {
  /** True if WebGPU is there and has an adapter. */
  webgpu: boolean;
  /** True if the adapter has `shader-f16`, which precision `fast` needs. */
  f16: boolean;
  /** True if the module for the CPU can run. */
  cpu: boolean;
  /** Reason why `webgpu` is false. */
  reason?: string;
}

export type InspectOptions = Pick<ModelOptions, 'model' | 'config' | 'family' | 'border' | 'clips' | 'previewRate' | 'cache' | 'fetch' | 'wasm' | 'onNotice' | 'signal'>;

/**
 * Reads what a model is from its config.json and the headers of its files, without weights and
 * without a device. Takes the options that the model would be opened with. Rejects like
 * {@link createDecoder} if the model can neither decode nor encode.
 */
export function inspect(options: InspectOptions): Promise<Inspection>;

/** Facts about a model, as `wgvae inspect --json` prints them, and the size of its download. */
export interface Inspection extends ModelFacts {
  /** Commit that the hub's revision stands for. */
  commit?: string;
  /** Decoding of images, or of clips if `clips` is set. */
  decode: Direction;
  encode: Direction;
}

export interface Direction {
  possible: boolean;
  /** Names of the tensors that are missing. */
  missing: string[];
  /** Any other reason why this direction is not possible. */
  unusable: string | null;
  /** Bytes of weights in the files. */
  weight_bytes: number;
  /** Bytes that loading would download, without headers; with `cache`, without the cached bytes. */
  download_bytes: number;
}

/**
 * Plans a decode or an encode without loading the model and without opening a device. Returns the
 * same as {@link Decoder.plan} or {@link Encoder.planEncode} of the loaded model, and as `wgvae
 * plan --json`.
 *
 * Without a budget it takes milliseconds. With one it usually takes less than a second, and up to
 * seconds for large pictures with small budgets. It runs on the calling thread: behind a slider,
 * use `planFor` of `wgvae/worker`.
 *
 * Rejects with a {@link WgvaeError}: `input`, which names the option; `budget`, whose `smallest` is
 * the smallest budget found; `too-large`; `config`.
 */
export function planFor(options: PlanForOptions & { frames: number }): Promise<WholeClipPlan>;
export function planFor(options: PlanForOptions): Promise<Plan>;

export interface PlanForOptions {
  /** Name of a published model, from {@link families}. Give this or `config`. */
  family?: string;
  /** The model's config.json: its text, the object, or a file. */
  config?: FileInput | object;
  /** Kind of the device. Default: `webgpu`. */
  device?: 'webgpu' | 'cpu';
  /** Columns of the picture, pixels. */
  width: number;
  /** Rows of the picture, pixels. */
  height: number;
  /** Frames of the clip. Default: an image. */
  frames?: number;
  /** As in {@link ModelOptions}. Not with `direction: 'encode'`. */
  previewRate?: boolean;
  /** See {@link ModelOptions.border}. */
  border?: ModelOptions['border'];
  /** Direction to plan. Default: `decode`. */
  direction?: 'decode' | 'encode';
  /** As in {@link ModelOptions}. */
  precision?: 'auto' | 'f16' | 'f32' | 'fast';
  /** As in {@link ModelOptions}. */
  unscaled?: boolean;
  /** As in {@link ModelOptions}, bytes. */
  memoryBudget?: number;
  /** As in {@link ModelOptions}. */
  leastMemory?: boolean;
  /** As in {@link ModelOptions}. */
  parking?: 'auto' | 'on' | 'off';
  /** Form of the decoded picture. Default: `bitmap`. */
  output?: Output;
  /** Tiling of a decode. Default: `exact`. */
  tiling?: Tiling;
  /** As in {@link DecodeOptions}. */
  tileSize?: number;
  /** As in {@link DecodeOptions}. */
  tileOverlap?: number;
  /**
   * Limits of the device: an adapter, or the limits that differ from WebGPU's default limits, named
   * as in {@link AdapterInfo}. Default: WebGPU's default limits, with `shader-f16`, on a GPU with
   * memory of its own. Not with `device: 'cpu'`.
   */
  limits?: GPUAdapter | Partial<Omit<DeviceLimits, 'vendor'> & { vendor: string }>;
  /** As in {@link ModelOptions}, for `config`. */
  fetch?: typeof fetch;
  /** As in {@link ModelOptions}. */
  wasm?: WasmSources;
}

/** Choice of the device. */
export interface DeviceOptions {
  /**
   * Kind of device, or your own `GPUDevice`, which is used, and never destroyed or changed.
   *
   * - `webgpu`: a device of the model's own.
   * - `cpu`: the CPU, many times slower than a GPU. Its module is fetched in place of the one for
   *   WebGPU. Precision `auto` is f32 there. Precision `fast`, and outputs `texture` and `buffer`,
   *   do not exist.
   * - `auto` (default): WebGPU if it has an adapter, else the CPU, with a notice of code `cpu`.
   *   With precision `fast`, `defaultLimits`, or `kernels` of your own it is `webgpu`, and
   *   the other kinds reject these options. It is `webgpu`, too, if `wasm` has only that module.
   */
  device?: GPUDevice | 'auto' | 'webgpu' | 'cpu';
  /**
   * Source of adapters. Default: `navigator.gpu`. Node has none: there, give what `create([])` of
   * the npm package webgpu returns.
   */
  gpu?: GPU;
  /** Kind of adapter to request. Default: `high-performance`. */
  powerPreference?: 'high-performance' | 'low-power';
  /** True to request WebGPU's default limits instead of all limits of the adapter. */
  defaultLimits?: boolean;
}

export interface ModelOptions extends DeviceOptions {
  /**
   * Files of the model, one of
   *
   * - a .safetensors file of a VAE or of a whole model, in diffusers' or in the original layout;
   * - its shards;
   * - `hf:owner/name`, a model of the Hugging Face Hub, with `/folder` or `/file.safetensors` and
   *   `@revision` as on the command line;
   * - `taesd`, `taesdxl`, `taesd3` or `taef1`, a tiny autoencoder from its author's repository
   *   there, with its `family`;
   * - a model from {@link hub}.
   *
   * `owner/name` without `hf:` is an error. Only the needed parts of the files are read.
   */
  model: FileInput | readonly FileInput[] | HubModel;
  /**
   * The model's config.json: its text, the object, or a file. A text that begins with `{` is never
   * read as an address. Default: the config.json on the hub.
   */
  config?: FileInput | object;
  /**
   * Name of the published model, from {@link families}, where the files do not tell which model
   * they are.
   */
  family?: string;
  /**
   * Pixels beyond a picture's borders, as torch's `padding_mode`, for models of `AutoencoderKL`'s
   * kind: `reflect` for EQ-SDXL-VAE, `circular` for seamless textures. Default: as the files say,
   * or else `zeros`.
   */
  border?: 'zeros' | 'reflect' | 'replicate' | 'circular';
  /**
   * Precision of weights and activations. `auto` (default) is f16 where that saves memory and keeps
   * the picture; `f32` is exact. `fast` is f16 with less memory traffic and a few times its error;
   * devices without `shader-f16` reject it.
   */
  precision?: 'auto' | 'f16' | 'f32' | 'fast';
  /**
   * True if the latents are already divided by the model's scaling factor. Default: false, latents
   * are scaled as the diffusion model leaves them. ComfyUI's .latent files (a tensor
   * `latent_tensor`) are read in the scale that ComfyUI saves for the model, without this option.
   */
  unscaled?: boolean;
  /**
   * True to open the model for clips ({@link Decoder.clip}, {@link Encoder.encodeClip}) instead of
   * single images; the two need different weights. Wan, Qwen-Image, SeedVR2, HunyuanVideo 1.5,
   * LTX-2 and TAEHV support clips. Default: false.
   */
  clips?: boolean;
  /**
   * True to decode a clip to one frame for each frame of latents: a cheaper preview, by the same
   * weights. Only models of TAEHV's family have it, and they cannot encode then. Default: false.
   */
  previewRate?: boolean;
  /**
   * Limit of the device's memory that a decode or an encode may use, bytes, weights included. On a
   * GPU a model with a budget keeps its packed weights in host memory. Default: no budget; on the
   * CPU 3.5 GiB, which is also the most there, because a module of WebAssembly has 4 GiB.
   */
  memoryBudget?: number;
  /**
   * True to prefer less memory to speed where that computes nothing twice. It changes nothing on
   * the CPU, and nothing for networks with norms over the whole image. For others, plans of large
   * pictures were predicted to take down to a sixth of the memory (TAESD at 4096x4096), and up to
   * five times as long. Default: false.
   */
  leastMemory?: boolean;
  /**
   * Parking: a budget may let activations wait in host memory. `auto` (default) parks where the
   * device has memory of its own. Browsers do not tell, so only GPUs that the browser calls
   * NVIDIA's count as such: other vendors make more GPUs that share the host's memory.
   */
  parking?: 'auto' | 'on' | 'off';
  /**
   * Kernels to decode and encode with. `tuned` (default) takes the kernels that {@link tune} has
   * stored for this adapter, and the rules' kernels where it has stored none. `rules` takes the
   * kernels for the adapter's kind and vendor. The `kernels` of a {@link Tuning} are taken as they
   * are; any other value is an `input` error. In f32 all kernels give the same bits. A plan names
   * its kernels in `choice`.
   */
  kernels?: 'tuned' | 'rules' | Kernels;
  /**
   * Number of threads on the CPU, which share the memory of one module, 1 to 255. Default: one for
   * each core, at most 16, in Node, in Deno, and in workers of pages with cross-origin isolation,
   * except in Firefox; elsewhere 1, because more are not possible there. Every number gives the
   * same bits. Ignored with WebGPU.
   */
  threads?: number;
  /**
   * True to cache the needed parts of addresses in the origin private file system, by address and
   * ETag, also from servers without HTTP Range. Without an ETag or Last-Modified, nothing is
   * cached. `limit` is the most that all models may take together, bytes; the least recently used
   * entries are evicted first.
   */
  cache?: boolean | { limit: number };
  /**
   * Function that requests addresses, also of latents and pictures, instead of the browser's
   * `fetch`: to add headers, or to use a proxy.
   */
  fetch?: typeof fetch;
  /**
   * Source of the .wasm module. Default: `../pkg/wgvae_bg.wasm` relative to this module, or
   * `wgvae_cpu_bg.wasm` or `wgvae_cpu_threads_bg.wasm` there for the CPU; bundlers find them. Each
   * module is compiled once: only the first call of any function with this option uses it. If
   * it is compiled already, the CPU computes without fused multiply-adds, which takes 20 to 27 %
   * longer.
   */
  wasm?: WasmSources;
  /**
   * Listener for the progress of loading, and of decodes and encodes that have no listener of their
   * own. An exception in a listener is reported as an uncaught error, and stops nothing.
   */
  onProgress?: (progress: Progress) => void;
  /** Listener for facts worth knowing that are no errors. */
  onNotice?: (notice: Notice) => void;
  /** Signal that aborts the loading. */
  signal?: AbortSignal;
}

/**
 * The kernels for an adapter, as {@link tune} returns them: plain data, to be stored and passed
 * back unchanged.
 */
export interface Kernels {
  /** Tile of the products of a Winograd convolution. */
  winograd_tile: MatmulTile;
  /** Kernels of the Winograd transforms. */
  transforms: 'runs' | 'pairs';
  /** Tile of all other products. */
  matmul_tile: MatmulTile;
  /** Tile of direct convolutions: neighbouring pixels, and columns of four channels. */
  direct_tile: { pixels: number; columns4: number };
  /** Bytes that each Winograd intermediate should not exceed. */
  winograd_scratch_bytes: number;
}

/** Tile of a product: its kernel, and the rows and columns of each invocation. */
export type MatmulTile = { register: { rows: number; columns4: number } } | { quad: { rows: number; columns4: number } } | { shared: { rows4: number; columns4: number } };

/**
 * Measures the few kernels that the rules for a device leave open, and returns the fastest. The
 * rules' own kernels win unless others take 5 % less time.
 *
 * The result is stored in the origin private file system, by adapter and version of the kernels.
 * Every model opened on this adapter from then on uses it (`kernels` of {@link ModelOptions}). It
 * changes no bit of a result in f32. It may change the memory that a decode takes:
 * {@link Decoder.plan} takes that into account, {@link planFor} does not.
 *
 * Takes about a second on a GPU once the kernels are compiled. Run nothing else on the GPU
 * meanwhile. Rejects like {@link createDecoder}.
 */
export function tune(options?: TuneOptions): Promise<Tuning>;

export interface TuneOptions extends Omit<DeviceOptions, 'device'> {
  /** Your device, or by default one that the call requests. */
  device?: GPUDevice;
  /** True to store the result. Default: true. */
  remember?: boolean;
  /** As in {@link ModelOptions}. */
  wasm?: WasmSources;
  /** Listener for the progress of compiling kernels. */
  onProgress?: (progress: Progress) => void;
  /** Signal that ends the wait. Work that is already on the GPU runs to its end. */
  signal?: AbortSignal;
}

/** Result of {@link tune}, as `wgvae tune --json` prints it. */
export interface Tuning {
  /** The fastest kernels. */
  kernels: Kernels;
  /** All measured kernels, the rules' kernels first. */
  trials: Trial[];
  /**
   * True if the result is stored. It is false in Node, in some private windows, and if there is no
   * room.
   */
  remembered: boolean;
}

export interface Trial {
  kernels: Kernels;
  /** Shortest time of a 3x3 convolution of 256 channels, seconds. */
  seconds: number;
  /**
   * True if the result equals the result of the rules' kernels, bit by bit. Other kernels are never
   * chosen.
   */
  same_bits: boolean;
}

/**
 * Decodes the latents in `reference` and compares the result with the image beside them, as `wgvae
 * selftest` does with its embedded data. It does so with every set of kernels that the rules can
 * give, each on a device of its own, and in every precision of the adapter.
 *
 * Loads and decodes once for each row, and keeps the weights in host memory meanwhile. Rejects like
 * {@link createDecoder}. A wrong result is no error: its row says so.
 */
export function selftest(options: SelftestOptions): Promise<Selftest>;

export interface SelftestOptions extends Omit<DeviceOptions, 'device'>, Pick<ModelOptions, 'model' | 'config' | 'family' | 'border' | 'wasm' | 'cache' | 'fetch' | 'onNotice'> {
  /**
   * A .safetensors file with `latents` `[1, c, h, w]` and the expected `image` `[1, 3, height,
   * width]` (4 with opacity) in f32, not clamped, for example from diffusers.
   */
  reference: FileInput;
  /** Listener for the number of finished rows. */
  onProgress?: (progress: Progress) => void;
  /** Signal that ends the wait, and the running decode before its next submission. */
  signal?: AbortSignal;
}

/** Result of {@link selftest}, as `wgvae selftest --json` prints it. */
export interface Selftest {
  /** Name of the adapter. */
  adapter: string;
  /** True if all rows are right. */
  right: boolean;
  rows: SelftestRow[];
}

export interface SelftestRow {
  kernels: Kernels;
  /**
   * Storage of elements. `packed_f16`: two halves in 32 bits, as on devices without `shader-f16`.
   */
  elements: 'f32' | 'f16' | 'packed_f16' | 'fast';
  /** Time of the second decode, after all kernels are compiled, seconds. */
  seconds: number;
  /**
   * Largest difference to the reference, relative to the reference's largest value; null if any
   * value is not finite.
   */
  error: number | null;
  /** Largest `error` that counts as right. */
  most: number;
  /**
   * True if the result equals the result of the first set of kernels with these elements, bit by
   * bit.
   */
  same_bits: boolean;
  right: boolean;
}

/** A model on a device. */
export interface LoadedModel {
  /** Facts about the model and its adapter. */
  readonly info: ModelInfo;
  /**
   * Device in use: yours, or the model's own; undefined on the CPU. A lost device is replaced by
   * another.
   */
  readonly device: GPUDevice | undefined;
  /** Time and memory of the last decode or encode; undefined before the first. */
  readonly report: Report | undefined;
  /**
   * Returns the device's memory of this model's buffers. On your own device, it counts only the
   * model's buffers. Throws `internal` if a bug has ended the wasm module.
   */
  ledger(): Ledger;
  /**
   * Cancels the running call, rejects queued calls with `destroyed`, and frees all memory of the
   * device. Resolves when it is free. May be called more than once. On the CPU the browser keeps
   * that memory for later models, until the page or the worker ends.
   *
   * Canvases that the model drew on go blank with the model's own device; on your device they stay
   * as they are. After a bug has ended the wasm module, the model's own device is still destroyed,
   * but buffers on your device stay until the browser collects garbage.
   */
  destroy(): Promise<void>;
  /** Calls `destroy`, for `await using`. */
  [Symbol.asyncDispose](): Promise<void>;
}

/**
 * Latents of a clip, or of a part of it, in an array of shape `[1, c, t, h, w]` or `[c, t, h, w]`.
 */
export interface ClipLatents {
  data: Float32Array | Uint16Array | HalfArray;
  shape: readonly number[];
  /** True if they are the VAE's own, without the diffusion model's scale. */
  unscaled?: boolean;
}

/**
 * Latents of a clip, `[1, c, t, h, w]` or `[c, t, h, w]`, one of
 *
 * - a .safetensors or .npy file, which is read frame by frame;
 * - an array;
 * - the clip's parts one after the other, in an array, a generator or another iterable, as
 *   {@link Encoder.encodeClip} gives them. Parts are requested when they are needed.
 *
 * All of them may also be tensors of onnxruntime-web or transformers.js. Arrays, and arrays of
 * parts, are copied when `clip` is called. A part from a generator is not used any more once the
 * next is requested.
 */
export type ClipInput = FileInput | ClipLatents | LatentsTensor | Sequence<ClipLatents | LatentsTensor>;

/** Values that come one after the other: an array, a generator, a stream or another iterable. */
export type Sequence<T> = Iterable<T> | AsyncIterable<T> | ReadableStream<T>;

/** Options for decoding a clip. */
export interface ClipOptions {
  /** Form of a frame. Default: `bitmap`. */
  output?: FrameOutput;
  /**
   * Frames per second, for the times of `video-frame`, which are an error without that output.
   * Default: 24.
   */
  fps?: number;
  /**
   * Budget of this clip, as in {@link ModelOptions}. The states that parts leave for each other
   * stay on the device where the budget leaves room, and otherwise in host memory.
   */
  memoryBudget?: number;
  /**
   * Most frames of latents of the clip. Only the memory of HunyuanVideo 1.5 depends on it, where
   * a longer clip is an error, and CogVideoX's first frames, which need their exact number.
   * Default: their number if it is known, else 33.
   */
  clipLatents?: number;
  /** Listener for the progress of each part, instead of the model's listener. */
  onProgress?: (progress: Progress) => void;
  /** Signal that ends the clip. */
  signal?: AbortSignal;
}

/**
 * Pictures of a clip in order, as `encode` takes them: an array, a generator, a stream or another
 * iterable. All have one size, unless `width` and `height` are given with the `fit` `cover` or
 * `fill`, which make it one. The pictures of an array are copied when `encodeClip` is called. The
 * pictures of a generator or a stream are requested when they are needed, and take less memory.
 *
 * VideoFrames and ImageBitmaps of a ReadableStream are closed after their use; those of other
 * iterables stay yours. The stream is canceled when the clip ends before it, also while it waits
 * for a frame or before its first. Frames in the stream's own queue then stay open: give your
 * stream a `highWaterMark` of 0.
 */
export type ClipPictures = Sequence<ImageInput>;

/**
 * Frames to add to a clip whose length is not 1 + n `frames_per_latent` (such as 1, 5 and 9; for
 * taeh3 5, 22 and 39): its last frame again, or the frames before it, backwards. Models with
 * `fills_parts` need none, and refuse `mirror`.
 */
export type Pad = 'repeat' | 'mirror';

/**
 * Options for encoding a clip. `signal` ends the clip. The noise of a sample continues from part to
 * part, as in `wgvae encode --sample`.
 */
export interface EncodeClipOptions extends Omit<EncodeOptions, 'index' | 'output'> {
  /** Result, as in {@link EncodeOptions}. Parts are no files. Default: `mode`. */
  output?: LatentsResult;
  /**
   * Most frames of latents of the clip. Only the memory of HunyuanVideo 1.5 depends on it, where
   * a longer clip is an error. Default: that of an array of pictures, else 33.
   */
  clipLatents?: number;
  /**
   * Padding of the clip. Default: none, and any other number of frames is an error. An array fails
   * at once, an iterable at its end.
   */
  pad?: Pad;
}

/** Latents of a part of a clip, as {@link Decoder.clip} takes them, or their moments. */
export interface EncodedPart {
  data: Float32Array;
  shape: [1, number, 1, number, number];
  /** True if they are the VAE's own, without the diffusion model's scale. */
  unscaled: boolean;
  /** Size of the encoded frames, pixels. */
  width: number;
  height: number;
  /** Frames of this part. */
  frames: number;
  /** Frames that `pad` has added. Drop as many at the end of a decode. */
  added: number;
}

/** Memory and work of a clip, of any length but for HunyuanVideo 1.5 (`clipLatents`). */
export interface ClipPlan {
  predicted_peak_bytes: number;
  /** Host memory for parked data. */
  host_bytes: number;
  /** Bytes of the states that parts leave for each other, on the device or in host memory. */
  state_bytes: number;
  width: number;
  height: number;
  /** Frames of every part but the first, which has one (TAEHV's encodes and LTX-2's decodes: all). */
  frames: number;
  /**
   * Parts after that of the last latent, in which a decoder that sees later frames (LTX-2) gives
   * its last ones. 0 for other models.
   */
  parts_after: number;
  /**
   * Plan of the first part. With tiles, `first` and `next` are plans of the tile that takes the
   * most memory.
   */
  first: Plan;
  /** Plan of every other part. */
  next: Plan;
}

/** Memory and work of a clip of the given length. */
export interface WholeClipPlan extends ClipPlan {
  /** Number of parts: one for each frame of latents. */
  parts: number;
  /** Multiply-adds of all parts. */
  macs: number;
  transferred_bytes: number;
  predicted_seconds: number;
}

/** A model that turns latents into pictures. */
export interface Decoder extends LoadedModel {
  /**
   * Plans the decode of a picture of this size, before anything is allocated. For models opened
   * without `clips`.
   *
   * Without a budget it takes milliseconds. With one it usually takes less than a second, and up to
   * seconds for large pictures with small budgets. Throws `input` if a side is not a multiple of
   * `info.decoded_pixels_per_latent`, `budget` if no plan keeps the budget, `too-large`.
   */
  plan(options: PlanOptions): Plan;
  /**
   * Returns the shape of latents, [n, c, h, w]; the n of [n, c, layers, h, w] is n * layers. For
   * `plan`, multiply h and w by `info.decoded_pixels_per_latent`. A file is read whole, and kept
   * for the next decode of the same Blob or address; by `wgvae/worker`, of the same address.
   */
  shapeOf(latents: LatentsInput, options?: { signal?: AbortSignal }): Promise<[number, number, number, number]>;
  /**
   * Decodes onto `canvas`, and gives it the size of the picture. The picture is copied there on the
   * GPU, or from memory if it has opacity.
   */
  decode(latents: LatentsInput, options: DecodeOptions & { canvas: HTMLCanvasElement | OffscreenCanvas }): Promise<undefined>;
  /** Decodes to an ImageData. */
  decode(latents: LatentsInput, options: DecodeOptions & { output: 'image-data' }): Promise<ImageData>;
  /** Decodes to a PNG file. */
  decode(latents: LatentsInput, options: DecodeOptions & { output: 'blob' }): Promise<Blob>;
  /** Decodes to a texture. */
  decode(latents: LatentsInput, options: DecodeOptions & { output: 'texture' }): Promise<GPUTexture>;
  /** Decodes to a buffer on the model's device. */
  decode(latents: LatentsInput, options: DecodeOptions & { output: 'buffer' }): Promise<BufferImage>;
  /** Decodes to floats, before clamping. */
  decode(latents: LatentsInput, options: DecodeOptions & { output: 'raw' }): Promise<RawImage>;
  /**
   * Decodes to an ImageBitmap, which holds GPU memory: close() it after use. Calls wait in a queue
   * while another runs. Rejects with a {@link WgvaeError}, or at once with `signal.reason`.
   */
  decode(latents: LatentsInput, options?: DecodeOptions & { output?: 'bitmap'; canvas?: undefined }): Promise<ImageBitmap>;
  /** Decodes to an output that is known only when it runs. */
  decode(latents: LatentsInput, options: DecodeOptions): Promise<AnyPicture | undefined>;
  /**
   * Decodes the n pictures of the latents one after the other, and yields each as it is ready. The
   * latents are copied at the call, and a file is read once. Ends when the caller stops iterating,
   * aborts or meets an error. Rejects like `decode`.
   */
  decodeEach(latents: LatentsInput, options: EachOptions & { output: 'image-data' }): AsyncGenerator<ImageData, void, undefined>;
  decodeEach(latents: LatentsInput, options: EachOptions & { output: 'blob' }): AsyncGenerator<Blob, void, undefined>;
  decodeEach(latents: LatentsInput, options: EachOptions & { output: 'texture' }): AsyncGenerator<GPUTexture, void, undefined>;
  decodeEach(latents: LatentsInput, options: EachOptions & { output: 'buffer' }): AsyncGenerator<BufferImage, void, undefined>;
  decodeEach(latents: LatentsInput, options: EachOptions & { output: 'raw' }): AsyncGenerator<RawImage, void, undefined>;
  /** Decodes to ImageBitmaps: close() each after use. */
  decodeEach(latents: LatentsInput, options?: EachOptions & { output?: 'bitmap' }): AsyncGenerator<ImageBitmap, void, undefined>;
  /** Decodes to an output that is known only when it runs. */
  decodeEach(latents: LatentsInput, options: EachOptions): AsyncGenerator<AnyPicture, void, undefined>;
  /**
   * Decodes a small picture while a diffusion model works: `decode` with `maxSide`, by default 512.
   * Always with `replace`: a newer preview ends the older one. Meant for tiny autoencoders.
   * Previews of one size, one after the other, allocate device memory only once.
   */
  preview(latents: LatentsInput, options: DecodeOptions & { canvas: HTMLCanvasElement | OffscreenCanvas }): Promise<undefined>;
  /** Decodes a small picture to an ImageBitmap: close() it after use. */
  preview(latents: LatentsInput, options?: Omit<DecodeOptions, 'output' | 'canvas'>): Promise<ImageBitmap>;
  /** Decodes a small picture to an ImageData. */
  preview(latents: LatentsInput, options: DecodeOptions & { output: 'image-data' }): Promise<ImageData>;
  /**
   * Shows the picture of the last decode again, on any canvas.
   *
   * The canvas has the picture when the call returns. A canvas that is not on a page loses it at
   * the end of the task, so read it at once. The promise resolves if the device could draw it.
   * Rejects with `input` if the last decode made no bitmap and drew on no canvas, or if its picture
   * never was on the device, in tiles or larger than a texture; with `device-lost` if the device is
   * lost: decode again. In Firefox up to 153, submit something
   * (`device.queue.submit([])`) directly before you read an OffscreenCanvas.
   */
  present(canvas: HTMLCanvasElement | OffscreenCanvas): Promise<void>;
  /**
   * Plans the decode of a clip of any length with frames of this size. Throws like `plan`. For
   * models opened with `clips`.
   */
  planClip(options: ClipPlanOptions): ClipPlan;
  /**
   * Decodes a clip, one frame of latents after the other, and yields its frames as they are ready:
   * t frames of latents are 1 + `info.frames_per_latent` (t - 1) frames, unless `info.starts` says
   * otherwise.
   *
   * Takes the same memory for a clip of any length: in memory are one part, and the states that it
   * needs of earlier frames. The clip ends when the caller stops iterating, aborts or meets an
   * error; the next clip is not affected. Rejects with a {@link WgvaeError}, or with
   * `signal.reason`. For models opened with `clips`.
   */
  clip(latents: ClipInput, options: ClipOptions & { output: 'image-data' }): AsyncGenerator<ImageData, void, undefined>;
  clip(latents: ClipInput, options: ClipOptions & { output: 'blob' }): AsyncGenerator<Blob, void, undefined>;
  /** Decodes to floats, before clamping. */
  clip(latents: ClipInput, options: ClipOptions & { output: 'raw' }): AsyncGenerator<RawImage, void, undefined>;
  /** Decodes to VideoFrames: close() each after use. */
  clip(latents: ClipInput, options: ClipOptions & { output: 'video-frame' }): AsyncGenerator<VideoFrame, void, undefined>;
  /** Decodes to ImageBitmaps: close() each after use. */
  clip(latents: ClipInput, options?: ClipOptions & { output?: 'bitmap' }): AsyncGenerator<ImageBitmap, void, undefined>;
  /** Decodes to an output that is known only when it runs. */
  clip(latents: ClipInput, options: ClipOptions): AsyncGenerator<AnyFrame, void, undefined>;
  /**
   * Decodes a clip like `clip`, to a stream of its frames. Frames are decoded as the stream is
   * read: it keeps none in a queue. `cancel`, an abort or an error ends the clip and frees it;
   * after an error the stream rejects like `clip`.
   */
  clipStream(latents: ClipInput, options: ClipOptions & { output: 'image-data' }): ReadableStream<ImageData>;
  clipStream(latents: ClipInput, options: ClipOptions & { output: 'blob' }): ReadableStream<Blob>;
  clipStream(latents: ClipInput, options: ClipOptions & { output: 'raw' }): ReadableStream<RawImage>;
  /** Decodes to VideoFrames, as an encoder of video takes them: close() each after use. */
  clipStream(latents: ClipInput, options: ClipOptions & { output: 'video-frame' }): ReadableStream<VideoFrame>;
  /** Decodes to ImageBitmaps: close() each after use. */
  clipStream(latents: ClipInput, options?: ClipOptions & { output?: 'bitmap' }): ReadableStream<ImageBitmap>;
  /** Decodes to an output that is known only when it runs. */
  clipStream(latents: ClipInput, options: ClipOptions): ReadableStream<AnyFrame>;
}

/** A model that turns pictures into latents. */
export interface Encoder extends LoadedModel {
  /**
   * Plans the encode of a picture of this size, before anything is allocated. For models opened
   * without `clips`. `encode` crops pictures to sides that are multiples of
   * `info.pixels_per_latent`; give the cropped size. Throws `input` if the picture is smaller than
   * one latent, `budget` if no plan keeps the budget, `too-large`.
   */
  planEncode(options: EncodePlanOptions): Plan;
  /** Encodes one picture to a file of its latents. */
  encode(image: ImageInput, options: EncodeOptions & { output: LatentsFile }): Promise<Blob>;
  /**
   * Encodes one picture. Calls wait in a queue while another runs. Rejects with a
   * {@link WgvaeError}, or at once with `signal.reason`.
   */
  encode(image: ImageInput, options?: EncodeOptions & { output?: LatentsResult }): Promise<Encoded>;
  /** Encodes one picture to an output that is known only when it runs. */
  encode(image: ImageInput, options: EncodeOptions): Promise<Encoded | Blob>;
  /**
   * Plans the encode of a clip of any length with frames of this size. Throws like `planEncode`.
   * For models opened with `clips`.
   */
  planEncodeClip(options: EncodeClipPlanOptions): ClipPlan;
  /**
   * Encodes a clip, its first frame and then `info.frames_per_latent` frames at a time, and yields
   * the latents of each such part as they are ready. 1 + `info.frames_per_latent` (t - 1) frames
   * become t frames of latents. If `info.fills_parts`, the first part has as many frames as others.
   *
   * Frames are requested when they are needed, and are not used any more once the next is
   * requested. Takes the same memory for a clip of any length. The clip, and the iteration of
   * `frames`, end when the caller stops iterating, aborts or meets an error; the next clip is not
   * affected. Rejects with a {@link WgvaeError}, or with `signal.reason`. For models opened with
   * `clips`.
   */
  encodeClip(frames: ClipPictures, options?: EncodeClipOptions): AsyncGenerator<EncodedPart, void, undefined>;
}

/** A model that decodes and encodes. */
export interface Vae extends Decoder, Encoder {}

/**
 * Latents of shape [n, c, h, w] or [c, h, w], or in memory and in files [n, c, layers, h, w] for a
 * model without time: each layer is a picture, as those of Qwen-Image-Layered. One of
 *
 * - values in memory: floats, half floats or the bits of half floats;
 * - f32 values in a buffer of the decoder's device, from byte `offset`;
 * - a tensor of onnxruntime-web or transformers.js;
 * - a .safetensors, .latent or .npy file.
 *
 * `unscaled: true` says that these latents are already divided by the model's scaling factor,
 * whatever the decoder was created with. Latents from `encode` carry it.
 *
 * Values in memory are copied when `decode` is called: they may be changed at once, also while the
 * decode waits in the queue. A GPU buffer, and a tensor that is not in memory, are read when the
 * decode starts: do not change them until the promise settles.
 */
export type LatentsInput =
  | FileInput
  | { data: Float32Array | Uint16Array | HalfArray; shape: readonly number[]; unscaled?: boolean }
  | { buffer: GPUBuffer; shape: readonly number[]; offset?: number; unscaled?: boolean }
  | LatentsTensor;

/** A Float16Array, in browsers that have it. TypeScript knows that class only in `esnext`. */
export interface HalfArray extends ArrayLike<number> {
  readonly [Symbol.toStringTag]: 'Float16Array';
  readonly buffer: ArrayBufferLike;
}

/**
 * The used properties of a Tensor of onnxruntime-web, or of transformers.js, which contains one.
 * Its type is `float32` or `float16`. f32 latents in a `gpu-buffer` are read from there; the buffer
 * must belong to the model's device. Other tensors outside memory (`ml-tensor` of WebNN, `texture`,
 * half floats on the GPU, pictures) are brought into memory by their own `getData()`, and stay
 * there.
 */
export interface OnnxTensor {
  readonly dims: readonly number[];
  readonly type: string;
  readonly location: string;
  readonly data: unknown;
  readonly gpuBuffer?: unknown;
  getData?(): Promise<unknown>;
  /** Tensor inside a tensor of transformers.js. */
  readonly ort_tensor?: OnnxTensor;
}

/** A tensor of latents, to which a caller may add their scale: see {@link LatentsInput}. */
export type LatentsTensor = OnnxTensor & { unscaled?: boolean };

/**
 * A picture, one of
 *
 * - anything that can be drawn on a canvas;
 * - a file that the browser decodes; all browsers decode PNG, JPEG and WebP;
 * - values -1 to 1 of shape [n, 3, h, w] or [3, h, w]: in memory like latents, in a tensor of
 *   onnxruntime-web or transformers.js, or in a .safetensors (a tensor `image`) or .npy file.
 *
 * A model with `info.in_channels` of 4 also takes values of shape [n, 4, h, w], and the opacity of
 * pictures. It takes pictures without opacity as opaque ones. Other models ignore opacity.
 *
 * Colours are not multiplied by alpha: those of an ImageData stay exact, and so do those of a file
 * or an ImageBitmap in browsers that read them by WebGL 2 or by a VideoFrame. Elsewhere 8 bits for
 * colours times alpha round them, and pixels that are fully transparent become black. A canvas for
 * 2D drawing does so by itself, and so does an ImageBitmap made without `premultiplyAlpha: 'none'`.
 *
 * Pictures are turned the right way up by their EXIF orientation, except WebP files, whose
 * orientation browsers ignore. They keep the colours of their file: no colour profile is
 * applied. Sides are cropped, by equal parts, to multiples of `info.pixels_per_latent`, and
 * `onNotice` says so; `width` and `height` of {@link EncodeOptions} resize instead. Values are
 * encoded as they are: the model ignores or pads the rows and columns at the bottom and right that
 * fill no latent.
 *
 * Arrays and ImageData are copied, and elements and canvases are drawn, when `encode` is called:
 * they may be changed at once. Close an ImageBitmap or a VideoFrame, and dispose of a tensor that
 * is not in memory, only after the promise has settled.
 */
export type ImageInput =
  | FileInput
  | ImageBitmapSource
  | { data: Uint8ClampedArray | Uint8Array; width: number; height: number }
  | { data: Float32Array | Uint16Array | HalfArray; shape: readonly number[] }
  | OnnxTensor;

/**
 * Form of a decoded picture. If `info.out_channels` is 4, it has opacity, and colours that are not
 * multiplied by alpha. Otherwise it is opaque.
 *
 * - `bitmap`: an ImageBitmap. With opacity, browsers keep its colours times alpha, in 8 bits.
 * - `image-data`: RGBA8 in memory.
 * - `blob`: a PNG file, with an alpha channel if the model has opacity.
 * - `raw`: floats before clamping.
 * - `texture`: a GPUTexture on the model's device, in the format of canvases. Draw with it, copy
 *   from it and to it, and destroy it yourself. A texture on the model's own device ends with that
 *   device. Plans do not count its memory.
 * - `buffer`: a GPUBuffer, with the same rules.
 */
export type Output = 'bitmap' | 'image-data' | 'blob' | 'raw' | 'texture' | 'buffer';

/**
 * Form of a frame of a clip. `video-frame`: an opaque VideoFrame of sRGB, with `timestamp` and
 * `duration` in microseconds by `fps`, in browsers that have WebCodecs. Others as {@link Output}.
 */
export type FrameOutput = 'bitmap' | 'image-data' | 'blob' | 'raw' | 'video-frame';

/** A picture in any form of {@link Output}. */
export type AnyPicture = ImageBitmap | ImageData | Blob | RawImage | GPUTexture | BufferImage;

/** A frame of a clip in any form of {@link FrameOutput}. */
export type AnyFrame = ImageBitmap | ImageData | Blob | RawImage | VideoFrame;

/**
 * Tiling of a decode. It reproduces the results of other tools, and is not meant to save memory
 * (see {@link ModelOptions.memoryBudget}).
 *
 * - `exact`: the whole picture, the model's own result.
 * - `blend`: tiles blended as diffusers does.
 * - `cosine`: tiles blended as SeedVR2's node for ComfyUI does.
 * - `estimate`: the whole picture, with group norms measured on a smaller one.
 */
export type Tiling = 'exact' | 'blend' | 'cosine' | 'estimate';

export interface DecodeOptions {
  /**
   * Canvas to show the picture on. It gets a context for WebGPU; on the CPU, and for pictures with
   * opacity, one for 2D drawing. A canvas that has a context of another kind rejects with code
   * `canvas`.
   */
  canvas?: HTMLCanvasElement | OffscreenCanvas;
  /** Form of the result. Default: `bitmap`. Not with `canvas`. */
  output?: Output;
  /** Tiling. Default: `exact`. Tiles are blended in memory, so a canvas cannot show them. */
  tiling?: Tiling;
  /** Side of a tile, pixels. Default: the model's `sample_size` for `blend`, 1024 for `cosine`. */
  tileSize?: number;
  /**
   * Overlap of neighbouring tiles, pixels. Default: a quarter of a tile for `blend`, an eighth for
   * `cosine`, LTX-2 and DC-AE.
   */
  tileOverlap?: number;
  /** Index of the picture among the n of the latents. Default: 0. */
  index?: number;
  /**
   * Most pixels of the longer side. If the picture would be larger, squares of latents are averaged
   * first, which loses detail: for previews. Not for latents in a GPUBuffer.
   */
  maxSide?: number;
  /**
   * Budget of this decode, instead of the decoder's. Weights can only move to host memory if the
   * decoder was created with a budget.
   */
  memoryBudget?: number;
  /**
   * True if only the newest such decode counts: it ends an older one that waits or runs, which
   * rejects with code `replaced` and the name `AbortError`. Previews are such decodes, too.
   * Default: false.
   */
  replace?: boolean;
  /** Listener for progress, instead of the decoder's. */
  onProgress?: (progress: Progress) => void;
  signal?: AbortSignal;
}

/** Options of {@link Decoder.decodeEach}. */
export type EachOptions = Omit<DecodeOptions, 'canvas' | 'index' | 'replace'>;

export interface ClipPlanOptions {
  /** Columns of a frame, pixels. */
  width: number;
  /** Rows of a frame, pixels. */
  height: number;
  /** Form of a frame. Default: `bitmap`. */
  output?: FrameOutput;
  /** Budget, bytes, instead of the decoder's. */
  memoryBudget?: number;
  /**
   * Most frames of latents of the clip. Only the memory of HunyuanVideo 1.5 depends on it, where
   * a longer clip is an error. Default: 33.
   */
  clipLatents?: number;
}

export interface PlanOptions {
  /** Columns of the picture, pixels. */
  width: number;
  /** Rows of the picture, pixels. */
  height: number;
  /**
   * Form of the decoded picture, which changes how it leaves the GPU. Default: `bitmap`, which is
   * also right for a canvas.
   */
  output?: Output;
  /** As in {@link DecodeOptions}. */
  tiling?: Tiling;
  /** As in {@link DecodeOptions}. */
  tileSize?: number;
  /** As in {@link DecodeOptions}. */
  tileOverlap?: number;
  /** Budget, bytes, instead of the decoder's. */
  memoryBudget?: number;
}

/** Result to choose from the distribution that an encoder gives. */
export type LatentsResult = 'mode' | 'sample' | 'moments';

/** Kind of a file of latents. */
export type LatentsFile = 'safetensors' | 'npy';

export interface EncodeOptions {
  /**
   * Result to take from the distribution of latents that an encoder gives.
   *
   * - `mode` (default): its mean.
   * - `sample`: drawn from it. The same `seed` gives the same sample in every browser, on every
   *   machine, and in `wgvae encode --sample`.
   * - `moments`: the distribution itself, [1, 2c, h, w]: means, then logarithms of variances.
   * - `safetensors`, `npy`: a file of the mean, or of a sample if there is a `seed`. The former
   *   also tells whether the latents are `unscaled`; for an `npy` file of such latents, give
   *   `unscaled: true` to the decoder.
   *
   * Tiny autoencoders give latents and no distribution: they reject `sample` and `moments`.
   */
  output?: LatentsResult | LatentsFile;
  /** Seed of a sample, a whole number. Default: 0. */
  seed?: number;
  /**
   * True to get the VAE's own latents, without the diffusion model's scale. Default: as the model
   * was created. Moments are never scaled.
   */
  unscaled?: boolean;
  /**
   * Columns to resize a picture to before it is encoded, pixels, 1 to 65535. With `width` or
   * `height` alone, the other side follows from the picture's proportions. Sides are lowered to
   * multiples of `info.pixels_per_latent`. `onNotice` gets `resized`, or `cropped` if only borders
   * are left out.
   *
   * The filter is PIL's Lanczos, as in `wgvae encode --resize`: the same pixels give the same
   * result in every browser, to the bit. If the model takes opacity, colours are multiplied by
   * alpha meanwhile; otherwise alpha is ignored. Values as `{ data, shape }`, tensors and files of
   * floats are an error.
   */
  width?: number;
  /** Rows to resize a picture to, pixels, as `width`. */
  height?: number;
  /**
   * Fit for a `width` and a `height` of other proportions than the picture's:
   *
   * - `cover` (default): the picture is scaled until it covers the size, and its middle is encoded;
   * - `contain`: the picture is scaled until it lies within the size. No bars are added, so one
   *   side may be shorter;
   * - `fill`: the picture is stretched.
   */
  fit?: 'cover' | 'contain' | 'fill';
  /** Index of the image among the n of a tensor. Default: 0. */
  index?: number;
  /**
   * Budget of this encode, instead of the model's. Weights can only move to host memory if the
   * model was created with a budget.
   */
  memoryBudget?: number;
  /** Listener for progress, instead of the model's. */
  onProgress?: (progress: Progress) => void;
  signal?: AbortSignal;
}

export interface EncodePlanOptions {
  /** Columns of the picture, pixels. */
  width: number;
  /** Rows of the picture, pixels. */
  height: number;
  /** Budget, bytes, instead of the model's. */
  memoryBudget?: number;
}

export interface EncodeClipPlanOptions extends EncodePlanOptions {
  /** Most frames of latents of the clip, as in {@link EncodeClipOptions}. Default: 33. */
  clipLatents?: number;
}

/** Latents of one picture, as `decode` takes them, or their moments. */
export interface Encoded {
  data: Float32Array;
  shape: [1, number, number, number];
  /** True if they are the VAE's own, without the diffusion model's scale. */
  unscaled: boolean;
  /** Size of the encoded picture, pixels. */
  width: number;
  height: number;
}

/**
 * One picture in a buffer on the model's device. Bind it as storage, copy from it and to it, and
 * destroy it yourself.
 *
 * Its bytes are [h, w, 4]: red, green, blue, and alpha (255 without opacity), row by row without
 * gaps. Colours are not multiplied by alpha. Pixel (x, y) is word `y * w + x`, as `unpack4x8unorm`
 * reads it. The buffer takes 4 * w * h bytes beyond the plan, which counts the source of the copy.
 */
export interface BufferImage {
  buffer: GPUBuffer;
  shape: [number, number, 4];
}

/**
 * Values of one picture, [c, h, w] as red, green, blue, and the opacity if `info.out_channels` is
 * 4, about -1 to 1.
 */
export interface RawImage {
  data: Float32Array;
  shape: [3 | 4, number, number];
}

export interface Progress {
  /**
   * Phase of the work, and the unit of `done` and `total`: bytes of weights in `load`, kernels in
   * `compile`, sets of kernels in `selftest`, steps of the plan in `decode` and `encode`. `compile`
   * comes before the first decode or encode that needs new kernels.
   */
  phase: 'load' | 'compile' | 'decode' | 'encode' | 'selftest';
  done: number;
  /** Total in the same unit, of one tile if there are tiles, which may differ; 0 while it is not known. */
  total: number;
  /**
   * Bytes that came over the network and not from the cache, read-ahead included. Only in `load`,
   * once weights arrive.
   */
  downloaded?: number;
  /**
   * Current step: `device` or `weights`, the layer, or the next kernel, empty after the last one.
   */
  step: string;
  /** Index of the part of a clip. Only while a part is prepared or runs. */
  part?: number;
  /**
   * Report of the part before, in the first progress of a part. A part may give no frames (LTX-2),
   * so that nothing else tells its report.
   */
  finished?: Report;
}

/**
 * - `no-ranges`: the server has no HTTP Range, so a whole file is downloaded.
 * - `waiting`: the server asks for a later request, and gets one.
 * - `cache-full`: there is no room, or no permission; from now on, downloads are not cached.
 * - `device-recovered`: the device was lost; the running call continues on a new one.
 * - `fallback`: an allocation failed, and a plan that needs less memory was used.
 * - `cpu`: there is no WebGPU, or it has no adapter, so the CPU computes, many times slower.
 * - `threads`: threads on the CPU could not be started, so one computes.
 * - `assumed`: neither the weights nor a `config` tell a property of the model, such as the number
 *   of groups of its norms, so the usual one is assumed.
 * - `cropped`: borders of a picture are not encoded. Of a clip: told once for each size of its
 *   pictures.
 * - `resized`: a picture is resized as `width`, `height` and `fit` ask, to the size in the message.
 *   Of a clip: told once for each size of its pictures.
 * - `transparent`: transparency of a picture is not encoded, by a model without opacity. Of a clip:
 *   told once.
 * - `range`: values of a picture are far outside -1 to 1, such as 0 to 255, and are encoded as they
 *   are. Of a clip: told once.
 */
export interface Notice {
  code: 'no-ranges' | 'waiting' | 'cache-full' | 'device-recovered' | 'fallback' | 'cpu' | 'threads' | 'assumed' | 'cropped' | 'resized' | 'transparent' | 'range';
  message: string;
  /** Length of the file, bytes, for `no-ranges`, if the server tells it. */
  bytes?: number;
}

/**
 * Memory of buffers on the device: bytes now, the most bytes that ever existed at once, and the
 * number of buffers ever created. {@link Report} has the memory of one decode or encode.
 */
export interface Ledger {
  current: number;
  peak: number;
  created: number;
}

/** Facts that the files of a model tell. */
export interface ModelFacts {
  /** Channels of pictures that the model encodes: 3, or 4 with opacity. */
  in_channels: 3 | 4;
  /** Channels of decoded pictures: 3, or 4 with opacity. */
  out_channels: 3 | 4;
  /** True if the encoder gives a distribution, as `sample` and `moments` need. */
  has_distribution: boolean;
  /**
   * Channels of the diffusion model's latents, or of the VAE's own if the model was created with
   * `unscaled`.
   */
  latent_channels: number;
  /** Pixels of the picture for one latent, in each direction. */
  pixels_per_latent: number;
  /**
   * Pixels of a decoded picture for one latent, in each direction. It is twice `pixels_per_latent`
   * for a decoder that doubles the size (Wan2.1-VAE-upscale2x).
   */
  decoded_pixels_per_latent: number;
  /** True if the network has a time axis: then the model can be opened with `clips`. */
  has_time: boolean;
  /**
   * Frames of a clip for each frame of its latents but the first, which has one. 1 for a network
   * without a time axis.
   */
  frames_per_latent: number;
  /**
   * True if `encodeClip` takes any number of frames (TAEHV): `frames_per_latent` for each frame of
   * latents, where the last frame is repeated. Then t frames of latents are made of more frames
   * than they decode to.
   */
  fills_parts: boolean;
  /**
   * Frames of latents that stand for one frame each: the first of a clip; the first of a clip with
   * an odd number of them (CogVideoX's taecvx); every fifth (MiniMax-H3's taeh3).
   */
  starts: 'first' | 'first_if_odd' | 'every_fifth';
  /** Name of the file, or of the first shard. */
  model: string;
  files: { name: string; bytes: number }[];
  /** Naming scheme of the tensors. */
  layout: string;
  /**
   * Origin of the scale of the latents, or the published models whose latents have such a shape.
   */
  scale: { known: true; from: string } | { known: false; candidates: string[] };
  /** Number of tensors in the files. */
  tensors: number;
  /** Number of tensors of each element type. */
  element_types: Record<string, number>;
  /** Number of weights. */
  parameters: { encoder: number; decoder: number; total: number };
  /** True if the files have an encoder. */
  encoder: boolean;
  /** True if the files have a decoder. */
  decoder: boolean;
  /**
   * A warning about what is assumed because neither the weights nor a `config` tell it: the number
   * of groups of norms. Otherwise null.
   */
  assumed: string | null;
  /** Configuration of the network, with diffusers' names. */
  config: Record<string, unknown>;
}

/** Storage of weights and activations. */
export type Storage = 'f32' | 'f16' | 'packed_f16' | 'fast_f16';

export interface ModelInfo extends ModelFacts {
  storage: Storage;
  /** Target time of one submission to the GPU, milliseconds. */
  submission_target: number;
  load_seconds: number;
  adapter: AdapterInfo;
}

export interface AdapterInfo {
  name: string;
  backend: string;
  device_type: string;
  driver: string;
  /** Vendor and device, if the browser tells them. */
  pci_id: string;
  /** Smallest and largest subgroup size. */
  subgroup_size: [number, number];
  /** True if kernels can use subgroup operations. */
  subgroups: boolean;
  /** Configurations of cooperative matrices; empty in browsers. */
  cooperative_matrices: string[];
  limits: DeviceLimits;
  /** Kernels that the rules choose for this adapter. */
  kernels: Kernels;
}

/** Limits of a device that plans use. */
export interface DeviceLimits {
  max_storage_buffer_binding_size: number;
  max_buffer_size: number;
  max_storage_buffers_per_shader_stage: number;
  max_compute_workgroups_per_dimension: number;
  max_compute_invocations_per_workgroup: number;
  max_compute_workgroup_storage_size: number;
  min_uniform_buffer_offset_alignment: number;
  shader_f16: boolean;
  timestamp_query: boolean;
  /** True if invocations swap values within a quad. */
  quads: boolean;
  /** `cpu`: a driver that runs on the CPU. `host`: the CPU itself, without a driver. */
  kind: 'cpu' | 'gpu' | 'host';
  /** True if the device shares the host's memory. */
  unified_memory: boolean;
  vendor: 'amd' | 'apple' | 'arm' | 'intel' | 'nvidia' | 'qualcomm' | 'other';
}

/** A tensor of planes, one for each channel. */
export interface Planes {
  size: { width: number; height: number };
  channels: number;
  /** Frames; 1 for an image. */
  frames: number;
}

/**
 * Plan of one decode or encode. With tiles, `macs`, `transferred_bytes` and `predicted_seconds`
 * count all tiles; the other fields belong to the tile that takes the most memory.
 */
export interface Plan {
  /** Number of tiles; 1 for a whole picture and for an encode. */
  tiles?: number;
  /** Input: the latents, or the picture. */
  input: Planes;
  /** Result: the picture, or the moments. */
  result: Planes;
  /** Most memory of the device at once: weights, slots, parameters and staging. */
  predicted_peak_bytes: number;
  weight_bytes: number;
  /** Bytes of activations, scratch, and data fetched under a budget. */
  slot_bytes: number;
  parameter_bytes: number;
  /** Bytes of staging buffers between host and device. */
  staging_bytes: number;
  /** Bytes of the picture if it stays on the GPU, for a canvas or a bitmap. */
  picture_bytes: number;
  largest_binding_bytes: number;
  /** Bytes that a budget keeps in host memory. */
  host_bytes: number;
  /** Bytes that a budget moves between host and device. */
  transferred_bytes: number;
  /** Expected number of submissions to the GPU. */
  submissions: number;
  /** Multiply-adds. */
  macs: number;
  steps: number;
  /** Number of kernels that the plan compiles. */
  kernels: number;
  /** Kernels that the plan uses. */
  choice: Kernels;
  predicted_seconds: number;
  /** Consecutive runs of steps, each with the most bytes of live buffers in it. */
  timeline: { stage: string; steps: number; macs: number; live_bytes: number }[];
}

export interface Report {
  /** Predicted peak of the plan that ran, of the largest tile, or of all plans of a clip; bytes. */
  predicted_peak_bytes: number;
  /** Most bytes of buffers on the device at once during the run. */
  measured_peak_bytes: number;
  seconds: number;
  /** Part of `seconds` that the receiver of the result took. */
  sink_seconds: number;
  /** GPU time of each stage, seconds, if the device measures it and the plan asked for it. */
  stage_seconds: number[] | null;
  /** Submissions, each with its steps of the plan, from `start` to before `end`. */
  submissions: { seconds: number; steps: { start: number; end: number } }[];
  /** Number of pipelines compiled for the run. */
  compiled: number;
  compile_seconds: number;
  /**
   * Reason for a smaller plan, if one was used: the failed allocation, and the peaks of both plans.
   */
  fallback: { failed: string; first_peak_bytes: number; peak_bytes: number } | null;
  /** Text of `fallback` for people. */
  fallback_text: string | null;
}

/**
 * The error that the package throws and rejects with. `code` is one of
 *
 * | code | meaning |
 * |---|---|
 * | `no-webgpu` | WebGPU is not available, or too old |
 * | `no-adapter`, `adapter-too-small`, `device-refused` | no usable GPU, and why |
 * | `device-lost`, `device-failed`, `out-of-memory` | the device failed, perhaps after a retry |
 * | `format`, `tensor`, `missing-tensors`, `config` | a file is not what it should be |
 * | `input`, `canvas` | an argument is not what it should be |
 * | `budget`, `too-large`, `host-memory` | does not fit; `smallest` is the smallest budget found |
 * | `not-finite` | the picture, or the latents, overflowed the precision |
 * | `http`, `network`, `truncated` | a wrong, missing or truncated answer (up to three tries) |
 * | `changed` | a file is not the one that was opened |
 * | `io` | a file could not be read |
 * | `destroyed` | the model has been destroyed |
 * | `cancelled` | the module stopped its work, which an abort of yours reports by its own reason |
 * | `replaced` | a newer decode with `replace`, or a newer preview, began; `name` is `AbortError` |
 * | `wasm` | no `wasm-unsafe-eval` in the Content-Security-Policy, or a wrong file |
 * | `internal` | a bug, or the module is out of memory: destroy and create all models again |
 *
 * An abort rejects with `signal.reason` instead, as fetch does.
 */
export class WgvaeError extends Error {
  constructor(code: ErrorCode, message: string, facts?: Record<string, unknown>);
  readonly code: ErrorCode;
  readonly expected?: string;
  readonly found?: string;
  /** HTTP status of a wrong answer. */
  readonly status?: number;
  /** Seconds until the next request is allowed, if the server says so. */
  readonly retryAfter?: number;
  /** Needed bytes, or the needed value of a limit. */
  readonly needed?: number;
  readonly limit?: number | string;
  /** Smallest memory budget found, bytes. */
  readonly smallest?: number;
  /** Predicted time with that budget, seconds. */
  readonly seconds?: number;
  /** Names of missing tensors. */
  readonly tensors?: string[];
  readonly reason?: string;
}

export type ErrorCode =
  | 'format' | 'tensor' | 'missing-tensors' | 'config' | 'input' | 'budget' | 'too-large' | 'not-finite' | 'host-memory' | 'io' | 'cancelled'
  | 'no-adapter' | 'adapter-too-small' | 'device-refused' | 'out-of-memory' | 'device-lost' | 'device-failed'
  | 'no-webgpu' | 'http' | 'network' | 'truncated' | 'changed' | 'canvas' | 'destroyed' | 'replaced' | 'wasm' | 'internal';

/**
 * Returns the size of the cache that `cache: true` fills, with the rests that pages left when they
 * were closed during a download: bytes, and number of files.
 */
export function cacheUsage(): Promise<{ bytes: number; entries: number }>;

/**
 * Lists the cached addresses, the most recently used last. `length` is the size of the file,
 * `bytes` the size on disk. Files of the hub have the address of their revision.
 */
export function cachedFiles(): Promise<{ url: string; length: number; bytes: number; used: Date }[]>;

/** Empties the cache, or removes the entry of one address. Later downloads are cached again. */
export function clearCache(address?: string | URL): Promise<void>;

/**
 * Asks the browser to keep the cache even when it runs out of room. Resolves to the browser's
 * answer; false in a worker, which may not ask.
 */
export function persistCache(): Promise<boolean>;

/** Options of {@link preview}. */
export interface LinearPreviewOptions {
  /** Name of the published model that the latents belong to, such as `sdxl` or `flux1`. */
  family: string;
  /** Most pixels of the longer side. More latents than that are averaged. Default: 512. */
  maxSide?: number;
  /** Index of the picture among the n of the latents. Default: 0. */
  index?: number;
  /** Function that fetches latents by their address, instead of the global one. */
  fetch?: typeof globalThis.fetch;
  wasm?: WasmSources;
  signal?: AbortSignal;
}

/**
 * Shows roughly what latents hold, without weights and without a device: a published linear map
 * makes a pixel of each latent of the VAE. The latents are as the diffusion model leaves them, or
 * the VAE's own if they say so.
 *
 * `new ImageData(data, width, height)` is the picture. Rejects with `input` for a family without
 * a known map, or latents of another model.
 */
export function preview(latents: LatentsInput, options: LinearPreviewOptions): Promise<{ data: Uint8ClampedArray<ArrayBuffer>; width: number; height: number }>;

/**
 * Returns the names of the published models, for `family`. Starts the wasm module if it is not
 * running; the first call decides which .wasm is used.
 */
export function families(wasm?: WasmSources): Promise<string[]>;

/** Returns the version of the wasm module. Starts the module if it is not running. */
export function version(wasm?: WasmSources): Promise<string>;
