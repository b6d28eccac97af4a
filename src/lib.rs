//! wgvae turns the latents of diffusion models into images on any GPU.
//!
//! A decode is planned before it runs. [`plan_decode`] needs only the model's configuration and a
//! device's limits. Its plan lists the kernels, the buffers and the memory that the decode will
//! use. [`Vae`] loads weights and executes plans. Nothing here blocks or prints.
//!
//! ```no_run
//! use wgvae::{
//!     Checkpoint, Control, DecodeOptions, Gpu, GpuOptions, HostTensor, Latents, LoadOptions, Vae,
//! };
//!
//! # async fn run() -> wgvae::Result<()> {
//! let gpu = Gpu::request(&GpuOptions::default()).await?;
//! let checkpoint = Checkpoint::open("sd-vae-ft-mse", Default::default()).await?;
//! let mut vae = Vae::load(&gpu, &checkpoint, LoadOptions::default()).await?;
//! // [n, c, h, w], in the scale of the diffusion model.
//! let shape = vec![1, 4, 64, 64];
//! let latents = Latents::new(HostTensor { shape, data: vec![0.0; 4 * 64 * 64] })?;
//! let image = vae.decode(&latents, 0, &DecodeOptions::default(), &mut Control::default()).await?;
//! println!("{} in {:.2} s", image.size, image.run.seconds);
//! # Ok(())
//! # }
//! ```

#[cfg(not(target_arch = "wasm32"))]
#[doc(hidden)]
pub mod demo;
mod direction;
mod error;
#[doc(hidden)]
pub mod gpu;
#[cfg(feature = "hub")]
pub mod hub;
mod io;
#[doc(hidden)]
pub mod kernels;
mod limits;
#[doc(hidden)]
pub mod model;
mod ordered;
#[doc(hidden)]
pub mod plan;
mod printable;
#[doc(hidden)]
pub mod quality;
mod selftest;
mod tensor;
#[doc(hidden)]
pub mod tiling;
mod tuning;
mod vae;
#[cfg(target_arch = "wasm32")]
mod web;

pub use direction::{Direction, Directions};
pub use error::{DeviceError, Error, Result};
pub use gpu::{
    AdapterReport, Control, Gpu, GpuOptions, Ledger, Listener, Preparing, Progress, RunReport, Submission, adapters,
};
pub use io::{
    ByteSource, Checkpoint, ElementType, LatentScale, Layout, MemorySource, Parameters, ReadFuture, StoredLatents,
    StoredTensor, TensorInfo, read_images, read_latents, write_latents,
};
#[cfg(not(target_arch = "wasm32"))]
pub use io::{FileSource, Variant};
pub use limits::{DeviceKind, DeviceLimits, MatrixUnits, Vendor};
pub use model::config::{
    AutoencoderConfig, FAMILIES, Family, Kl, LatentSpace, Network, OwnLatents, Packing, SeedVr, Tiny, Wan,
};
pub use plan::{ChannelOrder, Memory, Output, Plan, PlanFacts, RunFacts, StageFacts};
pub use selftest::{Selftest, SelftestControl, SelftestElements, SelftestRow, selftest};
pub use tensor::{Bytes, DType, HostTensor, Size, Storage};
pub use tiling::{Blend, BlendRule, Tiling};
pub use tuning::{Trial, TuneOptions, Tuning};
pub use vae::{
    ClipDecoder, ClipEncoder, DecodeOptions, Decoded, DecodedRows, EncodeOptions, Encoded, Fallback, Frames, Images,
    Latents, LoadOptions, Parking, Pixels, Planner, Plans, Posterior, Precision, Request, RowPixels, Rows, Vae,
    check_clips, check_decoder, check_encoder, plan, weight_reads,
};

/// Parts of the crate for the other crates of its repository and for its own tests. This module
/// and the hidden modules `demo`, `gpu`, `kernels`, `model`, `plan`, `quality` and `tiling` are not
/// part of the API: they change without notice.
#[doc(hidden)]
pub mod internals {
    #[cfg(not(target_arch = "wasm32"))]
    pub use crate::io::shard_index;
    pub use crate::io::{array_file, clips, convert, images, latents, names, npy, safetensors};
    pub use crate::limits::PlannedUnits;
    pub use crate::model::config;
    pub use crate::printable::Printable;
    pub use crate::tensor::MAX_PIXELS;
    pub use crate::vae::{compile_all, every_variant, odd_network, scale_latents, variants_for};
}

/// Compiles the examples of README and of the guide.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
#[doc = include_str!("../docs/guide/rust.md")]
struct Readme;
