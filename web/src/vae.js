// @ts-check
// Objects that callers hold: a model on a device that decodes, encodes, or does both.

import { ClipEncoding } from './clip-encoding.js';
import { streamOf } from './clip-stream.js';
import { Clips } from './clips.js';
import { Decoding } from './decoding.js';
import { Encoding } from './encoding.js';
import { MAX_SIDE } from './latest.js';
import { loadModel } from './loaded.js';
import { checkObject } from './options.js';

/** @typedef {import('./index.js').ModelOptions} ModelOptions */
/** @typedef {import('./loaded.js').Loaded} Loaded */

/** @param {ModelOptions} options */
export async function createDecoder(options) {
  return new Decoder(await loadModel(options, 'decode'));
}

/** @param {ModelOptions} options */
export async function createEncoder(options) {
  return new Encoder(await loadModel(options, 'encode'));
}

/** @param {ModelOptions} options */
export async function createVae(options) {
  return new Vae(await loadModel(options, 'both'));
}

/** @implements {PublicModel} @typedef {import('./index.js').LoadedModel} PublicModel */
class Model {
  #loaded;

  /** @param {Loaded} loaded */
  constructor(loaded) {
    this.#loaded = loaded;
  }

  get info() {
    return this.#loaded.info;
  }

  get device() {
    return this.#loaded.engine.device;
  }

  get report() {
    return this.#loaded.report;
  }

  ledger() {
    return this.#loaded.ledger();
  }

  destroy() {
    return this.#loaded.destroy();
  }

  [Symbol.asyncDispose]() {
    return this.destroy();
  }
}

/** @implements {PublicDecoder} @typedef {import('./index.js').Decoder} PublicDecoder */
class Decoder extends Model {
  #decoding;
  #clips;

  /** @param {Loaded} loaded */
  constructor(loaded) {
    super(loaded);
    this.#decoding = new Decoding(loaded);
    this.#clips = new Clips(loaded);
  }

  /** @param {import('./index.js').PlanOptions} options */
  plan(options) {
    return this.#decoding.plan(options);
  }

  /**
   * @param {import('./index.js').LatentsInput} latents
   * @param {{ signal?: AbortSignal }} [options]
   * @param {boolean} [isKept] see `Decoding.shapeOf`
   */
  shapeOf(latents, options, isKept) {
    return this.#decoding.shapeOf(latents, options, isKept);
  }

  /**
   * @param {import('./index.js').LatentsInput} latents
   * @param {import('./index.js').DecodeOptions} [options]
   */
  decode(latents, options) {
    return this.#decoding.decode(latents, options);
  }

  /**
   * @param {import('./index.js').LatentsInput} latents
   * @param {import('./index.js').EachOptions} [options]
   */
  decodeEach(latents, options) {
    return this.#decoding.decodeEach(latents, options);
  }

  /**
   * @param {import('./index.js').LatentsInput} latents
   * @param {import('./index.js').DecodeOptions} [options]
   */
  async preview(latents, options = {}) {
    checkObject(options);
    const { maxSide = MAX_SIDE, ...others } = options;
    return this.decode(latents, { ...others, maxSide, replace: true });
  }

  /** @param {HTMLCanvasElement | OffscreenCanvas} canvas */
  present(canvas) {
    return this.#decoding.present(canvas);
  }

  /** @param {import('./index.js').ClipPlanOptions} options */
  planClip(options) {
    return this.#clips.plan(options);
  }

  /**
   * @param {import('./index.js').ClipInput} latents
   * @param {import('./index.js').ClipOptions} [options]
   */
  clip(latents, options) {
    return this.#clips.decode(latents, options);
  }

  /**
   * @param {import('./index.js').ClipInput} latents
   * @param {import('./index.js').ClipOptions} [options]
   */
  clipStream(latents, options) {
    return streamOf((ended) => this.clip(latents, ended), options);
  }
}

/**
 * Returns a class of models that also encode.
 * @template {new (...loaded: any[]) => Model} Base
 * @param {Base} Base
 */
function encoding(Base) {
  return class extends Base {
    #encoding;
    #clips;

    /** @param {any[]} loaded */
    constructor(...loaded) {
      super(...loaded);
      this.#encoding = new Encoding(loaded[0]);
      this.#clips = new ClipEncoding(loaded[0]);
    }

    /** @param {import('./index.js').EncodePlanOptions} options */
    planEncode(options) {
      return this.#encoding.planEncode(options);
    }

    /**
     * @param {import('./index.js').ImageInput} image
     * @param {import('./index.js').EncodeOptions} [options]
     */
    encode(image, options) {
      return this.#encoding.encode(image, options);
    }

    /** @param {import('./index.js').EncodeClipPlanOptions} options */
    planEncodeClip(options) {
      return this.#clips.plan(options);
    }

    /**
     * @param {import('./index.js').ClipPictures} frames
     * @param {import('./index.js').EncodeClipOptions} [options]
     */
    encodeClip(frames, options) {
      return this.#clips.encode(frames, options);
    }
  };
}

/** @implements {PublicEncoder} @typedef {import('./index.js').Encoder} PublicEncoder */
class Encoder extends encoding(Model) {}

/** @implements {PublicVae} @typedef {import('./index.js').Vae} PublicVae */
class Vae extends encoding(Decoder) {}
