/// <reference lib="esnext.disposable" />
// Types of the package. Axes: n pictures, c channels, h rows, w columns. Memory is in bytes, time
// in seconds, lengths are in pixels unless it says otherwise. Plans and reports are what the
// command line writes as JSON, so their fields are spelt as there.

/**
 * Bytes: a file the user chose or any other Blob, an address (http, https, blob), or memory. Files
 * are read by slices, addresses by HTTP Range.
 */
export type FileInput = Blob | URL | string | ArrayBuffer | Uint8Array;

/**
 * Where the .wasm is: an address, an answer to a request for it, its bytes, or the compiled module.
 */
export type WasmSource = URL | string | Request | Response | BufferSource | WebAssembly.Module;

/**
 * Opens a model to decode with, gets a GPU device and loads the decoder's weights onto it.
 *
 * Rejects with a {@link WgvaeError}, or with `signal.reason`: `input` for a model without a
 * decoder.
 */
export function createDecoder(options: ModelOptions): Promise<Decoder>;

/**
 * The same to encode with: loads the encoder's weights. Rejects with `input` for a model without an
 * encoder.
 */
export function createEncoder(options: ModelOptions): Promise<Encoder>;

/** The same for both, on one device. Decodes and encodes wait for one another. */
export function createVae(options: ModelOptions): Promise<Vae>;

export interface HubOptions {
  /** A branch, tag or commit. Default: `main`. */
  revision?: string;
  /**
   * A folder in the repository. Default: its root, and `vae` of a repository that is a pipeline.
   */
  subfolder?: string;
  /** A .safetensors file in that folder. Default: diffusers' weights, else the only one. */
  file?: string;
  /** Weights marked fp16, instead of the plain ones where there are both. */
  variant?: 'fp16';
  /**
   * For repositories that want one. It is sent to the hub, never to where that redirects. Whoever
   * can read your page can read it.
   */
  token?: string;
  /** Another hub. Default: `https://huggingface.co`. */
  endpoint?: string;
  /** Instead of that of {@link ModelOptions}. It gets the token with the hub's addresses. */
  fetch?: typeof fetch;
}

/** A model by its name. Nobody is asked for it before it is opened. */
export interface HubModel {
  readonly id: string;
  readonly revision: string;
}

/**
 * A model of the Hugging Face Hub, `owner/name`: the files that `wgvae --model hf:owner/name`
 * takes. Opening it rejects with `http` and a `status` where the hub refuses, with `format` where
 * no file is a model's. Throws `input` for what cannot be a name.
 */
export function hub(id: string, options?: HubOptions): HubModel;

export type InspectOptions = Pick<ModelOptions, 'model' | 'config' | 'family' | 'clips' | 'cache' | 'fetch' | 'wasm' | 'onNotice' | 'signal'>;

/**
 * What a model is, by its config.json and the headers of its files: no weights, no device. Takes
 * the options that it would be opened with. Rejects as {@link createDecoder} does for what can
 * neither decode nor encode.
 */
export function inspect(options: InspectOptions): Promise<Inspection>;

/** As `wgvae inspect --json` has it, and what loading takes. */
export interface Inspection extends ModelFacts {
  /** The commit that the hub's revision is. */
  commit?: string;
  /** Of images, or of clips where `clips` is set. */
  decode: Direction;
  encode: Direction;
}

export interface Direction {
  possible: boolean;
  /** Names of tensors that it lacks. */
  missing: string[];
  /** What else stands in the way. */
  unusable: string | null;
  /** Weights in the files. */
  weight_bytes: number;
  /** What loading would download, but for the headers: with `cache`, what is not kept yet. */
  download_bytes: number;
}

/**
 * What a decode or an encode would take: a model that need not be loaded, on a device that need not
 * be opened. The same as {@link Decoder.plan} or {@link Encoder.planEncode} of such a model on such
 * a device, and as `wgvae plan --json`. Takes milliseconds without a budget, up to a second with
 * one, on the thread that asks: behind a slider use that of `wgvae/worker`.
 *
 * Rejects with a {@link WgvaeError}: `input`, which names the option; `budget`, whose `smallest` is
 * the smallest budget that was found to do; `too-large`; `config`.
 */
export function planFor(options: PlanForOptions & { frames: number }): Promise<WholeClipPlan>;
export function planFor(options: PlanForOptions): Promise<Plan>;

export interface PlanForOptions {
  /** A published model, of {@link families}; or `config`. */
  family?: string;
  /** A model's config.json: its text, the object, or a file. */
  config?: FileInput | object;
  /** Columns of the picture, pixels. */
  width: number;
  /** Rows of the picture, pixels. */
  height: number;
  /** Of a clip: its pictures. Default: an image. */
  frames?: number;
  /** Default: `decode`. */
  direction?: 'decode' | 'encode';
  /** As in {@link ModelOptions}. */
  precision?: 'auto' | 'f16' | 'f32' | 'fast';
  /** As in {@link ModelOptions}. */
  unscaled?: boolean;
  /** As in {@link ModelOptions}, bytes. */
  memoryBudget?: number;
  /** As in {@link ModelOptions}. */
  parking?: 'auto' | 'on' | 'off';
  /** What a decode will make. Default: `bitmap`. */
  output?: Output;
  /** Of a decode. Default: `exact`. */
  tiling?: Tiling;
  /** As in {@link DecodeOptions}. */
  tileSize?: number;
  /** As in {@link DecodeOptions}. */
  tileOverlap?: number;
  /**
   * Of the device: an adapter, or what differs from WebGPU's default limits, under the names that
   * {@link AdapterInfo} has. Default: WebGPU's default limits, with `shader-f16`, on a GPU with
   * memory of its own.
   */
  limits?: GPUAdapter | Partial<Omit<DeviceLimits, 'vendor'> & { vendor: string }>;
  /** As in {@link ModelOptions}, for `config`. */
  fetch?: typeof fetch;
  /** As in {@link ModelOptions}. */
  wasm?: WasmSource;
}

/** Which device is asked for. */
export interface DeviceOptions {
  /**
   * A device of yours. It is used, and never destroyed or changed. Without it a device of its own
   * is requested.
   */
  device?: GPUDevice;
  /**
   * Whose adapters are asked for. Default: `navigator.gpu`. Node has none of its own: there it is
   * what `create([])` of the npm package webgpu gives.
   */
  gpu?: GPU;
  /** Which adapter to ask for. Default: high-performance. */
  powerPreference?: 'high-performance' | 'low-power';
  /** Ask for WebGPU's default limits instead of all that the adapter has. */
  defaultLimits?: boolean;
}

export interface ModelOptions extends DeviceOptions {
  /**
   * A .safetensors file of a VAE or of a whole model, in diffusers' or in the original layout, or
   * its shards; or a model of the Hugging Face Hub: `hf:owner/name`, with `/folder` or
   * `/file.safetensors` and `@revision` as the command line takes it, or what {@link hub} gives.
   * Only what is needed of it is read.
   */
  model: FileInput | readonly FileInput[] | HubModel;
  /**
   * The model's config.json: its text, the object, or a file. A text that begins with `{` is not
   * taken for an address. Default: the hub's.
   */
  config?: FileInput | object;
  /** Which published model it is, if its files do not tell. {@link families} lists the names. */
  family?: string;
  /**
   * Of weights and activations. `auto` (default) is f16 where that saves memory and keeps the
   * picture, `f32` is exact. `fast` is f16 with less traffic and a few times its error, and is
   * refused on devices without `shader-f16`.
   */
  precision?: 'auto' | 'f16' | 'f32' | 'fast';
  /**
   * The latents are already divided by the model's scaling factor. Default: no, they are as the
   * diffusion model leaves them, but for those in ComfyUI's .latent files (a tensor
   * `latent_tensor`), which always are.
   */
  unscaled?: boolean;
  /**
   * The model is for clips ({@link Decoder.clip}, {@link Encoder.encodeClip}), not for single
   * images: both want weights of their own. Wan, Qwen-Image and SeedVR2 know time. Default: no.
   */
  clips?: boolean;
  /**
   * The most GPU memory that a decode or an encode may take, bytes, weights included. With it,
   * packed weights stay in host memory. Default: no budget.
   */
  memoryBudget?: number;
  /**
   * Whether a budget may leave activations in host memory for a while. `auto` (default): where the
   * device has memory of its own, for which only GPUs that the browser calls NVIDIA's are taken: it
   * does not tell, and other vendors make more that share the host's.
   */
  parking?: 'auto' | 'on' | 'off';
  /**
   * Which kernels it decodes and encodes with. `tuned` (default): those that {@link tune} has found
   * on this adapter, where it has; else, and with `rules`, those for its kind and vendor. Or what
   * {@link tune} gave as `kernels`: others are an error, `input`. In f32 all give the same bits; a
   * plan says which it has (`choice`).
   */
  kernels?: 'tuned' | 'rules' | Kernels;
  /**
   * Keep what is needed of addresses in the origin private file system, by address and ETag, also
   * from servers without HTTP Range. Without an ETag or Last-Modified nothing is kept. `limit`: the
   * most that all models may take together, bytes; those used longest ago make room.
   */
  cache?: boolean | { limit: number };
  /**
   * Asks for addresses instead of the browser's, those of latents and pictures, too: for headers of
   * yours, or a proxy.
   */
  fetch?: typeof fetch;
  /**
   * Where the .wasm is. Default: `../pkg/wgvae_bg.wasm` from this module, which bundlers find. It
   * is compiled once: the first call of any function that takes this decides, later ones are not
   * asked.
   */
  wasm?: WasmSource;
  /**
   * Hears of loading, and of decodes and encodes that have no listener of their own. What a
   * listener throws is reported as an uncaught error, and stops nothing.
   */
  onProgress?: (progress: Progress) => void;
  /** Hears of what is worth knowing and no error. */
  onNotice?: (notice: Notice) => void;
  /** Aborts the loading. */
  signal?: AbortSignal;
}

/**
 * Which kernels there are, as {@link tune} finds them: plain data, to be kept and given back as it
 * is.
 */
export interface Kernels {
  [name: string]: unknown;
}

/**
 * Runs the few kernels that the rules for a device leave open, and says which is fastest there: the
 * rules' own unless another takes 5 % less. It is kept in the origin private file system, by
 * adapter and version of the kernels, and taken by every model that is opened there from then on
 * (`kernels` of {@link ModelOptions}). It changes no bit of a result in f32, but perhaps the memory
 * that a decode takes, which {@link Decoder.plan} knows and {@link planFor} does not.
 *
 * Takes about a second on a GPU, once kernels are compiled: let nothing else run there meanwhile.
 * Rejects as {@link createDecoder} does.
 */
export function tune(options?: TuneOptions): Promise<Tuning>;

export interface TuneOptions extends DeviceOptions {
  /** Whether what is found is kept. Default: yes. */
  remember?: boolean;
  /** As in {@link ModelOptions}. */
  wasm?: WasmSource;
  /** Hears of the kernels that are compiled. */
  onProgress?: (progress: Progress) => void;
  /** Ends the wait; what runs on the GPU by then ends by itself. */
  signal?: AbortSignal;
}

/** As `wgvae tune --json` has it. */
export interface Tuning {
  /** Those to take. */
  kernels: Kernels;
  /** All that were tried, those of the rules first. */
  trials: Trial[];
  /** Whether they are kept: not in Node, in some private windows, and where there is no room. */
  remembered: boolean;
}

export interface Trial {
  kernels: Kernels;
  /** What a 3x3 convolution of 256 channels takes at best. */
  seconds: number;
  /**
   * Whether the result is that of the rules' kernels, to the bit. Where not, they are not taken.
   */
  same_bits: boolean;
}

/**
 * Decodes the latents in `reference` with every set of kernels that the rules can give, each on a
 * device of its own, in every precision that the adapter has, and compares with the image beside
 * them, as `wgvae selftest` does with what it has embedded. Takes as many loads and decodes as
 * there are rows, and keeps the weights in host memory meanwhile. Rejects as {@link createDecoder}
 * does; what is computed wrongly is no error, but said in the rows.
 */
export function selftest(options: SelftestOptions): Promise<Selftest>;

export interface SelftestOptions extends Omit<DeviceOptions, 'device'>, Pick<ModelOptions, 'model' | 'config' | 'family' | 'wasm' | 'cache' | 'fetch' | 'onNotice'> {
  /**
   * A .safetensors file with `latents` `[1, c, h, w]` and `image` `[1, 3, height, width]`: what
   * diffusers, say, makes of them in f32, not clamped.
   */
  reference: FileInput;
  /** Hears how many rows are done. */
  onProgress?: (progress: Progress) => void;
  /** Ends the wait, and what runs before its next submission. */
  signal?: AbortSignal;
}

/** As `wgvae selftest --json` has it. */
export interface Selftest {
  /** The name of the adapter. */
  adapter: string;
  /** Whether all rows are right. */
  right: boolean;
  rows: SelftestRow[];
}

export interface SelftestRow {
  kernels: Kernels;
  /**
   * How elements are stored. `packed_f16`: two halves in 32 bits, as on devices without
   * `shader-f16`.
   */
  elements: 'f32' | 'f16' | 'packed_f16' | 'fast';
  /** What the second decode took, when all was compiled. */
  seconds: number;
  /**
   * The largest difference to the reference, as a part of its largest value; null where something
   * is no number.
   */
  error: number | null;
  /** The most that is right. */
  most: number;
  /** Whether the result is that of the first set of kernels with these elements, to the bit. */
  same_bits: boolean;
  right: boolean;
}

/** The options under the name that they had while there was no encoder. */
export type DecoderOptions = ModelOptions;

/** One model on one device. */
export interface LoadedModel {
  /** The model, and the adapter that it is on. */
  readonly info: ModelInfo;
  /** The device in use: yours, or its own. Another one after a loss. */
  readonly device: GPUDevice;
  /** What the last decode or encode took; undefined before. */
  readonly report: Report | undefined;
  /**
   * GPU memory that this model's buffers take. Adopted devices: its own buffers only. Throws
   * `internal` when a bug has ended the module.
   */
  ledger(): Ledger;
  /**
   * Cancels what runs, rejects what waits with `destroyed`, and frees all GPU memory. Resolves when
   * it is free. May be called again. Canvases that it drew on go blank with its own device; on a
   * device of yours they stay as they are. After a bug has ended the module its own device is
   * destroyed all the same; what was on a device of yours goes when the browser collects garbage.
   */
  destroy(): Promise<void>;
  /** The same, for `await using`. */
  [Symbol.asyncDispose](): Promise<void>;
}

/** Latents of a clip, or of a part of it, in an array: `[1, c, t, h, w]` or `[c, t, h, w]`. */
export interface ClipLatents {
  data: Float32Array | Uint16Array | HalfArray;
  shape: readonly number[];
  /** They are the VAE's own, without the diffusion model's scale. */
  unscaled?: boolean;
}

/**
 * Latents of a clip: a .safetensors or .npy file, of which a frame is read at a time; an array; or
 * its parts one after the other, in an array, a generator or another iterable, as {@link
 * Encoder.encodeClip} gives them; all of them also as tensors of onnxruntime-web or
 * transformers.js. Parts are asked for when they are needed. `[1, c, t, h, w]` or `[c, t, h, w]`.
 * Arrays, and arrays of parts, are copied when `clip` is called; what a generator gives is not used
 * any more when it is asked for the next.
 */
export type ClipInput = FileInput | ClipLatents | OnnxTensor | Iterable<ClipLatents | OnnxTensor> | AsyncIterable<ClipLatents | OnnxTensor>;

/** How a clip is decoded. */
export interface ClipOptions {
  /** What a frame is. Default: `bitmap`. */
  output?: FrameOutput;
  /**
   * As in {@link ModelOptions}, for this clip. What its parts keep for each other is on the device
   * where the budget leaves room, and else in host memory.
   */
  memoryBudget?: number;
  /** Hears how far each part is, instead of the model's listener. */
  onProgress?: (progress: Progress) => void;
  /** Ends the clip. */
  signal?: AbortSignal;
}

/**
 * Pictures of a clip, one after the other and all of one size: an array, a generator or another
 * iterable of what `encode` takes as one picture. An array's are copied when `encodeClip` is
 * called; a generator's come when they are needed, and take less memory.
 */
export type ClipPictures = Iterable<ImageInput> | AsyncIterable<ImageInput>;

/**
 * What is added to a clip of other than 1 + n `frames_per_latent` frames, such as 1, 5 and 9: its
 * last frame again, or the ones before it, backwards.
 */
export type Pad = 'repeat' | 'mirror';

/**
 * How a clip is encoded: `signal` ends it, and the noise of a sample goes on from part to part, as
 * that of `wgvae encode --sample` does.
 */
export interface EncodeClipOptions extends Omit<EncodeOptions, 'index'> {
  /**
   * Default: nothing is added, and another number of frames is an error: at once of an array, else
   * at the end.
   */
  pad?: Pad;
}

/** Latents of a part of a clip, which {@link Decoder.clip} takes as they are; or their moments. */
export interface EncodedPart {
  data: Float32Array;
  shape: [1, number, 1, number, number];
  /** Whether they are the VAE's own, without the diffusion model's scale. */
  unscaled: boolean;
  /** Columns and rows of what was encoded, pixels. */
  width: number;
  height: number;
  /** Pictures of it. */
  frames: number;
  /** And how many `pad` has added: as many are to be left out at the end of a decode. */
  added: number;
}

/** What a clip takes, however long it is. */
export interface ClipPlan {
  predicted_peak_bytes: number;
  /** Host memory for what waits there. */
  host_bytes: number;
  /** What its parts keep for each other, wherever that is. */
  state_bytes: number;
  width: number;
  height: number;
  /** Frames of every part but the first, which has one. */
  frames: number;
  /** Of the first part; in tiles, here and in `next`, of the tile that takes the most memory. */
  first: Plan;
  /** Of every other part. */
  next: Plan;
}

/** What a clip of so many frames takes. */
export interface WholeClipPlan extends ClipPlan {
  /** One for each frame of latents. */
  parts: number;
  /** Of all parts. */
  macs: number;
  transferred_bytes: number;
  predicted_seconds: number;
}

/** A model that turns latents into pictures. */
export interface Decoder extends LoadedModel {
  /**
   * What decoding a picture of this size will take, before anything is allocated. Takes
   * milliseconds without a budget, up to a second with one. Throws `input` if the sides are no
   * multiples of `info.pixels_per_latent`, `budget` if no plan keeps the budget, `too-large`.
   */
  plan(options: PlanOptions): Plan;
  /**
   * The shape of latents, [n, c, h, w]. `plan` takes h and w times `info.pixels_per_latent`. A file
   * is read whole for it, and kept for the next decode of the same Blob or address.
   */
  shapeOf(latents: LatentsInput, options?: { signal?: AbortSignal }): Promise<[number, number, number, number]>;
  /**
   * Decodes onto `canvas`, which gets the picture's size. The picture is copied there on the GPU.
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
  /** Decodes to floats. */
  decode(latents: LatentsInput, options: DecodeOptions & { output: 'raw' }): Promise<RawImage>;
  /**
   * Decodes to an ImageBitmap: close() it when it has been shown, it is GPU memory. Decodes asked
   * while one runs are queued. Rejects with a {@link WgvaeError}, or at once with `signal.reason`.
   */
  decode(latents: LatentsInput, options?: DecodeOptions): Promise<ImageBitmap>;
  /**
   * Shows the picture of the last decode again, on any canvas. The canvas has it when the call
   * returns and loses it at the end of the task if it is not on a page, so read it at once; the
   * promise tells whether the device took it. Rejects with `input` if the last decode made no
   * bitmap and wrote no canvas, with `device-lost` if the device is lost: decode again. In Firefox
   * up to 153, submit something (`device.queue.submit([])`) directly before you read an
   * OffscreenCanvas.
   */
  present(canvas: HTMLCanvasElement | OffscreenCanvas): Promise<void>;
  /**
   * What the decode of a clip with frames of this size will take, however long it is. Throws as
   * `plan` does. For models opened with `clips`.
   */
  planClip(options: ClipPlanOptions): ClipPlan;
  /**
   * Decodes a clip, one frame of latents after the other, and gives its frames as they are ready: t
   * frames of latents are 1 + `info.frames_per_latent` (t - 1) frames. Takes the same memory for a
   * clip of any length: a part of it is in memory, and what frames need of those before them.
   * Whoever stops iterating, aborts or meets an error ends the clip; the next is right. Rejects
   * with a {@link WgvaeError}, or with `signal.reason`. For models opened with `clips`.
   */
  clip(latents: ClipInput, options: ClipOptions & { output: 'image-data' }): AsyncGenerator<ImageData, void, undefined>;
  clip(latents: ClipInput, options: ClipOptions & { output: 'blob' }): AsyncGenerator<Blob, void, undefined>;
  /** Decodes to floats. */
  clip(latents: ClipInput, options: ClipOptions & { output: 'raw' }): AsyncGenerator<RawImage, void, undefined>;
  /** Decodes to ImageBitmaps: close() each when it has been shown. */
  clip(latents: ClipInput, options?: ClipOptions): AsyncGenerator<ImageBitmap, void, undefined>;
}

/** A model that turns pictures into latents. */
export interface Encoder extends LoadedModel {
  /**
   * What encoding a picture of this size will take, before anything is allocated. `encode` crops
   * pictures to sides that are multiples of `info.pixels_per_latent`; give these. Throws `input`
   * for a picture that is smaller than a latent, `budget` if no plan keeps the budget, `too-large`.
   */
  planEncode(options: EncodePlanOptions): Plan;
  /**
   * Encodes one picture. What is asked while something runs is queued. Rejects with a {@link
   * WgvaeError}, or at once with `signal.reason`.
   */
  encode(image: ImageInput, options?: EncodeOptions): Promise<Encoded>;
  /**
   * What the encode of a clip with frames of this size will take, however long it is. Throws as
   * `planEncode` does. For models opened with `clips`.
   */
  planEncodeClip(options: EncodePlanOptions): ClipPlan;
  /**
   * Encodes a clip, its first frame and then `info.frames_per_latent` at a time, and gives the
   * latents of each such part as they are ready: 1 + `info.frames_per_latent` (t - 1) frames are t
   * frames of latents. Frames are asked for when they are needed, and not used any more when the
   * next is asked for. Takes the same memory for a clip of any length. Whoever stops iterating,
   * aborts or meets an error ends the clip, and with it the iteration of `frames`; the next is
   * right. Rejects with a {@link WgvaeError}, or with `signal.reason`. For models opened with
   * `clips`.
   */
  encodeClip(frames: ClipPictures, options?: EncodeClipOptions): AsyncGenerator<EncodedPart, void, undefined>;
}

/** A model that does both. */
export interface Vae extends Decoder, Encoder {}

/**
 * Latents of shape [n, c, h, w] or [c, h, w]: values in memory as floats, half floats or the bits
 * of half floats; f32 values in a buffer of the decoder's device, from `offset` bytes, which are
 * read from there once, as latents are small; a tensor of onnxruntime-web or transformers.js; or a
 * .safetensors, .latent or .npy file. `unscaled`: whatever the decoder was created with, these are
 * already divided by the model's scaling factor, as `encode` says of what it gives.
 *
 * What is in memory is copied when `decode` is called: it may be changed at once, also while the
 * decode waits for its turn. A GPU buffer, and a tensor that is not in memory, are read when their
 * turn comes: leave them as they are until the promise settles.
 */
export type LatentsInput =
  | FileInput
  | { data: Float32Array | Uint16Array | HalfArray; shape: readonly number[]; unscaled?: boolean }
  | { buffer: GPUBuffer; shape: readonly number[]; offset?: number }
  | OnnxTensor;

/** A Float16Array, where the browser has it. */
export interface HalfArray extends ArrayLike<number> {
  readonly BYTES_PER_ELEMENT: 2 | number;
  readonly buffer: ArrayBufferLike;
}

/**
 * What is used of a Tensor of onnxruntime-web, or of transformers.js, which has one inside:
 * `float32` or `float16`. Latents in f32 in a `gpu-buffer` are read from there, which must be of
 * the model's device. Whatever else is not in memory (`ml-tensor` of WebNN, `texture`, half floats
 * on the GPU, pictures) its own `getData()` brings there, where it then is.
 */
export interface OnnxTensor {
  readonly dims: readonly number[];
  readonly type: string;
  readonly location: string;
  readonly data: unknown;
  readonly gpuBuffer?: unknown;
  getData?(): Promise<unknown>;
  /** That of transformers.js. */
  readonly ort_tensor?: OnnxTensor;
}

/**
 * A picture: whatever can be drawn; a file that the browser decodes, PNG, JPEG and WebP in all of
 * them; or values -1 to 1 of shape [n, 3, h, w] or [3, h, w], in memory as latents may be, in a
 * tensor of onnxruntime-web or transformers.js, or in a .safetensors (a tensor `image`) or .npy
 * file.
 *
 * Pictures are taken the right way up, with the colours that their file has: no colour profile is
 * applied, and transparency is left out (where nothing of a pixel can be seen, browsers give
 * black). They are not resized: what sides have beyond a multiple of `info.pixels_per_latent` is
 * cut off, in equal parts, and `onNotice` says so. Values in memory are encoded as they are: what
 * fills no latent at the right and below, the model leaves out, or fills up.
 *
 * Arrays and ImageData are copied, elements and canvases drawn, when `encode` is called: they may
 * be changed at once. Close an ImageBitmap or a VideoFrame, and dispose of a tensor that is not in
 * memory, when the promise has settled.
 */
export type ImageInput =
  | FileInput
  | ImageBitmapSource
  | { data: Uint8ClampedArray; width: number; height: number }
  | { data: Float32Array | Uint16Array | HalfArray; shape: readonly number[] }
  | OnnxTensor;

/**
 * `bitmap`: an ImageBitmap. `image-data`: RGBA8 in memory. `blob`: a PNG file. `raw`: floats before
 * clamping. `texture`: a GPUTexture on the model's device, of its canvases' format, to be drawn
 * with, copied from and to, and destroyed by whoever asked; of the model's own device it goes with
 * that. Its memory is in no plan. `buffer`: the same as a GPUBuffer.
 */
export type Output = FrameOutput | 'texture' | 'buffer';

/** Of a clip. */
export type FrameOutput = 'bitmap' | 'image-data' | 'blob' | 'raw';

/**
 * To reproduce what other tools make of latents, not to save memory (see {@link
 * ModelOptions.memoryBudget}). `exact`: the whole picture, the model's own result. `blend`: tiles
 * blended as by diffusers. `cosine`: as by SeedVR2's node for ComfyUI. `estimate`: the whole
 * picture, with the norms of a smaller one.
 */
export type Tiling = 'exact' | 'blend' | 'cosine' | 'estimate';

export interface DecodeOptions {
  /**
   * Where to show the picture. One that has a context of another kind cannot be used: code
   * `canvas`.
   */
  canvas?: HTMLCanvasElement | OffscreenCanvas;
  /** What to resolve with, if there is no canvas. Default: `bitmap`. */
  output?: Output;
  /** Default: `exact`. Tiles are blended in memory, so not onto a canvas. */
  tiling?: Tiling;
  /** Side of a tile, pixels. Default: of `blend` the model's `sample_size`, of `cosine` 1024. */
  tileSize?: number;
  /**
   * What neighbouring tiles share, pixels. Default: of `blend` a quarter of a tile, of `cosine` an
   * eighth.
   */
  tileOverlap?: number;
  /** Which of the n pictures. Default: 0. */
  index?: number;
  /**
   * For this decode instead of the decoder's. Weights can only make way if the decoder was created
   * with a budget.
   */
  memoryBudget?: number;
  /** Instead of the decoder's. */
  onProgress?: (progress: Progress) => void;
  signal?: AbortSignal;
}

export interface ClipPlanOptions {
  /** Columns of a frame, pixels. */
  width: number;
  /** Rows of a frame, pixels. */
  height: number;
  /** What a frame will be. Default: `bitmap`. */
  output?: FrameOutput;
  /** Instead of the decoder's. */
  memoryBudget?: number;
}

export interface PlanOptions {
  /** Columns of the picture, pixels. */
  width: number;
  /** Rows of the picture, pixels. */
  height: number;
  /**
   * What the decode will make: pictures leave on different ways. Default: `bitmap`, which is also
   * right for a canvas.
   */
  output?: Output;
  /** As in {@link DecodeOptions}. */
  tiling?: Tiling;
  /** As in {@link DecodeOptions}. */
  tileSize?: number;
  /** As in {@link DecodeOptions}. */
  tileOverlap?: number;
  /** Instead of the decoder's. */
  memoryBudget?: number;
}

export interface EncodeOptions {
  /**
   * An encoder gives a distribution of latents. `mode` (default): its middle. `sample`: drawn from
   * it; the same for the same `seed` in every browser and on every machine, and as `wgvae encode
   * --sample` draws. `moments`: the distribution, [1, 2c, h, w]: means, then logarithms of
   * variances. Tiny autoencoders give latents and no distribution: there `sample` is refused.
   */
  output?: 'mode' | 'sample' | 'moments';
  /** Of a sample: a whole number. Default: 0. */
  seed?: number;
  /**
   * The VAE's own latents, without the diffusion model's scale. Default: as the model was created.
   * Moments never have it.
   */
  unscaled?: boolean;
  /** Which of the n images of a tensor. Default: 0. */
  index?: number;
  /**
   * For this encode instead of the model's. Weights can only make way if it was created with a
   * budget.
   */
  memoryBudget?: number;
  /** Instead of the model's. */
  onProgress?: (progress: Progress) => void;
  signal?: AbortSignal;
}

export interface EncodePlanOptions {
  /** Columns of the picture, pixels. */
  width: number;
  /** Rows of the picture, pixels. */
  height: number;
  /** Instead of the model's. */
  memoryBudget?: number;
}

/** Latents of one picture, which `decode` takes as they are; or their moments. */
export interface Encoded {
  data: Float32Array;
  shape: [1, number, number, number];
  /** Whether they are the VAE's own, without the diffusion model's scale. */
  unscaled: boolean;
  /** Columns and rows of what was encoded, pixels. */
  width: number;
  height: number;
}

/**
 * One picture in a buffer on the model's device, to be bound as storage, copied from and to, and
 * destroyed by whoever asked: [h, w, 4] bytes, red, green, blue and alpha of 255, row after row
 * without gaps, so that pixel (x, y) is word `y * w + x`, as `unpack4x8unorm` has it. 4 * w * h
 * bytes beyond the plan, which has what it is copied from.
 */
export interface BufferImage {
  buffer: GPUBuffer;
  shape: [number, number, 4];
}

/** Values of one picture, [3, h, w], about -1 to 1: red, green, blue. */
export interface RawImage {
  data: Float32Array;
  shape: [3, number, number];
}

export interface Progress {
  /**
   * Bytes of weights are counted in `load`, kernels in `compile`, which comes before a decode or an
   * encode that wants kernels for the first time, sets of kernels in `selftest`, and steps of the
   * plan in the others.
   */
  phase: 'load' | 'compile' | 'decode' | 'encode' | 'selftest';
  done: number;
  /** 0 where it is not known yet. */
  total: number;
  /**
   * Of `load`, once weights come: bytes that the network and not the cache has brought, what is
   * read ahead among them.
   */
  downloaded?: number;
  /**
   * What is being done: `device` or `weights`, the layer, or the kernel that comes next, of which
   * there is none after the last.
   */
  step: string;
}

/**
 * - `no-ranges`: the server has no HTTP Range, so a whole file is downloaded.
 * - `waiting`: the server asks to be asked again later, and is.
 * - `cache-full`: there is no room, or no permission; what is fetched from now on is not kept.
 * - `device-recovered`: the device was lost; what ran goes on with a new one.
 * - `fallback`: an allocation failed, and a plan that needs less memory was used.
 * - `cropped`: borders of a picture are not encoded. Of a clip: told once.
 * - `transparent`: transparency of a picture is not encoded. Of a clip: told once.
 * - `range`: values of a picture are well beyond -1 to 1, such as 0 to 255, and are encoded as they
 *   are. Of a clip: told once.
 */
export interface Notice {
  code: 'no-ranges' | 'waiting' | 'cache-full' | 'device-recovered' | 'fallback' | 'cropped' | 'transparent' | 'range';
  message: string;
  /** Of `no-ranges`: how long the file is, where the server tells. */
  bytes?: number;
}

/**
 * Bytes of GPU buffers now, the most there have ever been at once, and how many were ever created.
 * What one decode or encode took is in {@link Report}.
 */
export interface Ledger {
  current: number;
  peak: number;
  created: number;
}

/** What is known of a model, under the name that it had while there was no encoder. */
export type DecoderInfo = ModelInfo;

/** What the files tell. */
export interface ModelFacts {
  /**
   * Of the diffusion model's latents, or of the VAE's own where the model was created with
   * `unscaled`.
   */
  latent_channels: number;
  /** Pixels of the picture for one latent, in each direction. */
  pixels_per_latent: number;
  /** Whether its network knows time: then it can be opened with `clips`. */
  has_time: boolean;
  /**
   * Frames of a clip for each frame of its latents but the first, which has one. 1 of a network
   * that knows no time.
   */
  frames_per_latent: number;
  /** The file, or the first of its shards. */
  model: string;
  files: { name: string; bytes: number }[];
  /** Whose names the tensors have. */
  layout: string;
  /**
   * Where the scale of the latents is known from, or which published models have latents of such a
   * shape.
   */
  scale: { known: true; from: string } | { known: false; candidates: string[] };
  /** How many tensors the files hold. */
  tensors: number;
  /** How many of them have each type of elements. */
  element_types: Record<string, number>;
  /** Numbers of weights. */
  parameters: { encoder: number; decoder: number; total: number };
  /** Whether the files have an encoder. */
  encoder: boolean;
  /** Whether the files have a decoder. */
  decoder: boolean;
  /** The network, in diffusers' names. */
  config: Record<string, unknown>;
}

/** How weights and activations are stored. */
export type Storage = 'f32' | 'f16' | 'packed_f16' | 'fast_f16';

export interface ModelInfo extends ModelFacts {
  storage: Storage;
  /** Milliseconds that one submission to the GPU is meant to take. */
  submission_target: number;
  load_seconds: number;
  adapter: AdapterInfo;
}

export interface AdapterInfo {
  name: string;
  backend: string;
  device_type: string;
  driver: string;
  /** Vendor and device, where the browser tells. */
  pci_id: string;
  /** Smallest and largest subgroup. */
  subgroup_size: [number, number];
  /** Whether kernels could use subgroup operations. */
  subgroups: boolean;
  /** Configurations of cooperative matrices: none in browsers. */
  cooperative_matrices: string[];
  limits: DeviceLimits;
  /** Those of the rules. */
  kernels: Kernels;
}

/** What plans may use of a device. */
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
  /** Whether invocations swap values within a quad. */
  quads: boolean;
  kind: 'cpu' | 'gpu';
  /** Whether the device shares the host's memory. */
  unified_memory: boolean;
  vendor: 'amd' | 'apple' | 'arm' | 'intel' | 'nvidia' | 'qualcomm' | 'other';
}

/** Numbers in planes, one for each channel. */
export interface Planes {
  size: { width: number; height: number };
  channels: number;
  /** One of an image. */
  frames: number;
}

/**
 * In tiles, `macs`, `transferred_bytes` and `predicted_seconds` are those of all tiles, and the
 * rest of the tile that takes the most memory.
 */
export interface Plan {
  /** Of a decode: 1 of a whole picture. */
  tiles?: number;
  /** What goes in: latents, or the picture. */
  input: Planes;
  /** What comes out: the picture, or moments. */
  result: Planes;
  /** The most GPU memory at once: weights, slots, parameters and staging. */
  predicted_peak_bytes: number;
  weight_bytes: number;
  /** Activations, scratch, and what a budget fetches. */
  slot_bytes: number;
  parameter_bytes: number;
  /** What data passes through between host and device. */
  staging_bytes: number;
  /** The picture, where it stays on the GPU: for a canvas or a bitmap. */
  picture_bytes: number;
  largest_binding_bytes: number;
  /** What a budget leaves in host memory. */
  host_bytes: number;
  /** What a budget moves between host and device. */
  transferred_bytes: number;
  /** Expected. */
  submissions: number;
  /** Multiply-adds. */
  macs: number;
  steps: number;
  /** How many are compiled for it. */
  kernels: number;
  /** Which. */
  choice: Kernels;
  predicted_seconds: number;
  /** Runs of steps in order, with the most bytes of live buffers in each. */
  timeline: { stage: string; steps: number; macs: number; live_bytes: number }[];
}

export interface Report {
  /** Of the plan that ran. */
  predicted_peak_bytes: number;
  /** Bytes of all buffers that were on the device at once while it ran. */
  measured_peak_bytes: number;
  seconds: number;
  /** The part of `seconds` that whoever received the result took. */
  sink_seconds: number;
  /** GPU time of each stage, where the device measures that and the plan asked for it. */
  stage_seconds: number[] | null;
  /** Each with its steps of the plan, from `start` to before `end`. */
  submissions: { seconds: number; steps: { start: number; end: number } }[];
  /** Pipelines compiled for it. */
  compiled: number;
  compile_seconds: number;
  /** What a smaller plan was used for, if one was: what failed, and the peaks of both plans. */
  fallback: { failed: string; first_peak_bytes: number; peak_bytes: number } | null;
  /** The same in words. */
  fallback_text: string | null;
}

/**
 * What the package throws and rejects with. `code` is one of
 *
 * | code | what |
 * |---|---|
 * | `no-webgpu` | the browser has no WebGPU here, or one that is too old |
 * | `no-adapter`, `adapter-too-small`, `device-refused` | no usable GPU, and why |
 * | `device-lost`, `device-failed`, `out-of-memory` | the device gave up, after a second try where that makes sense |
 * | `format`, `tensor`, `missing-tensors`, `config` | a file is not what it should be |
 * | `input`, `canvas` | an argument is not what it should be |
 * | `budget`, `too-large`, `host-memory` | it does not fit; `smallest` is the smallest budget found to do |
 * | `not-finite` | the picture, or the latents, overflowed the precision |
 * | `http`, `network`, `truncated` | the server's answer is wrong, missing, or broke off; asked for three times before |
 * | `changed` | a file is not the one that was opened |
 * | `io` | a file could not be read |
 * | `destroyed` | the model is |
 * | `wasm` | the browser refuses the module: a Content-Security-Policy without `wasm-unsafe-eval`, or another file |
 * | `internal` | a bug in wgvae, or no memory left for its module: all its models end so; `destroy` them and create another |
 *
 * An abort rejects with `signal.reason` instead, as fetch does.
 */
export class WgvaeError extends Error {
  constructor(code: ErrorCode, message: string, facts?: Record<string, unknown>);
  readonly code: ErrorCode;
  readonly expected?: string;
  readonly found?: string;
  /** Of a server's answer, where that was wrong. */
  readonly status?: number;
  /** Seconds until the server may be asked again, if it says so. */
  readonly retryAfter?: number;
  /** Bytes, or the value of a limit. */
  readonly needed?: number;
  readonly limit?: number | string;
  /** The smallest memory budget that was found to do, bytes. */
  readonly smallest?: number;
  /** What it would take with that, seconds. */
  readonly seconds?: number;
  /** Names of missing tensors. */
  readonly tensors?: string[];
  readonly reason?: string;
}

export type ErrorCode =
  | 'format' | 'tensor' | 'missing-tensors' | 'config' | 'input' | 'budget' | 'too-large' | 'not-finite' | 'host-memory' | 'io' | 'cancelled'
  | 'no-adapter' | 'adapter-too-small' | 'device-refused' | 'out-of-memory' | 'device-lost' | 'device-failed'
  | 'no-webgpu' | 'http' | 'network' | 'truncated' | 'changed' | 'canvas' | 'destroyed' | 'wasm' | 'internal';

/**
 * What `cache: true` has kept, and what pages left that were closed in the middle of a download:
 * bytes, and files that they are in.
 */
export function cacheUsage(): Promise<{ bytes: number; entries: number }>;

/**
 * What is kept of each address, used last at the end: of `length` bytes of the file, `bytes` on
 * disk. Files of the hub have the address of their revision.
 */
export function cachedFiles(): Promise<{ url: string; length: number; bytes: number; used: Date }[]>;

/**
 * Removes all of that, or what is kept of an address. What is fetched from then on is kept again.
 */
export function clearCache(address?: string | URL): Promise<void>;

/**
 * Asks the browser to keep that also when it runs out of room. Whether it will; false in a worker,
 * which may not ask.
 */
export function persistCache(): Promise<boolean>;

/**
 * Names of the published models, for `family`. Starts the wasm module if it is not yet; where the
 * .wasm is, the first call decides.
 */
export function families(wasm?: WasmSource): Promise<string[]>;

/** The version of the module. Starts it if it is not yet. */
export function version(wasm?: WasmSource): Promise<string>;
