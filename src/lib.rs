//! wgvae turns the latents of diffusion models into images, and images into latents, on any GPU
//! or on the CPU.
//!
//! A decode is planned before it runs. [`plan()`] needs only a model's configuration and a device's
//! limits. Its plan lists the kernels, the buffers and the memory that the decode will use. [`Vae`]
//! loads weights and executes plans. Nothing here prints.
//!
//! ```no_run
//! use wgvae::device::DeviceOptions;
//! use wgvae::{Checkpoint, Device, HostTensor, Latents, LoadOptions, Vae};
//!
//! # async fn run() -> wgvae::Result<()> {
//! let device = Device::open(&DeviceOptions::default()).await?;
//! let checkpoint = Checkpoint::open("sd-vae-ft-mse").await?;
//! let mut vae = Vae::load(&device, &checkpoint, LoadOptions::default()).await?;
//! // [n, c, h, w], in the scale of the diffusion model.
//! let tensor = HostTensor { shape: vec![1, 4, 64, 64], data: vec![0.0; 4 * 64 * 64] };
//! let latents = Latents::new(tensor)?;
//! let image = vae.decode(&latents).await?;
//! println!("{} pixels, {} bytes of RGBA", image.size, image.pixels.len());
//! # Ok(())
//! # }
//! ```
//!
//! [`Vae::decode_with`] takes [`DecodeOptions`], such as a memory budget, and a [`Control`], which
//! shows progress and cancels.

#[macro_use]
mod wasm_not_send;

#[doc(hidden)]
pub mod cpu;
#[cfg(not(target_arch = "wasm32"))]
#[doc(hidden)]
pub mod demo;
pub mod device;
mod direction;
mod error;
mod execution;
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
mod named;
mod ordered;
#[doc(hidden)]
pub mod plan;
pub mod preview;
mod printable;
pub mod quality;
pub mod selftest;
mod tensor;
pub mod tiling;
pub mod tuning;
mod vae;
#[cfg(target_arch = "wasm32")]
mod web;

pub use device::Device;
pub use direction::{Direction, Directions};
pub use error::{Error, Result};
pub use execution::{Control, Progress};
pub use gpu::{Gpu, GpuOptions};
pub use io::Checkpoint;
pub use model::config::LatentSpace;
pub use named::Named;
pub use tensor::{Bytes, HostTensor, Size, Storage};
#[doc(no_inline)]
pub use tiling::Tiling;
pub use vae::{
    DecodeOptions, Decoded, EncodeOptions, Encoded, Frames, Images, Latents, LoadOptions, Parking, Planner, Plans,
    Precision, Request, Vae, plan,
};

/// Pixels and rows of decoded images, the choice of one image of a batch, and the distribution that
/// an encode gives.
pub mod images {
    pub use crate::plan::{ChannelOrder, Output};
    pub use crate::vae::{At, FrameSink, PixelFormat, Pixels, Posterior, RowPixels, RowSink, Rows};
}

/// Clips, decoded and encoded part by part: see [`Vae::decode_clip`](crate::Vae::decode_clip) and
/// [`Vae::encode_clip`](crate::Vae::encode_clip).
pub mod clips {
    pub use crate::vae::{ClipDecoder, ClipEncoder};
}

/// Configurations of models, and the families of published ones.
pub mod config {
    pub use crate::model::config::{
        AutoencoderConfig, Dc, DcBlock, DcLevel, DcNorm, FAMILIES, Family, HunyuanVideo, Kl, Ltx2, Ltx2Level, Network,
        OwnLatents, Packing, PaddingMode, SeedVr, SizeChange, Starts, Tiny, Wan,
    };
}

/// Files of weights, latents and images, and sources of their bytes.
pub mod files {
    pub use crate::io::{
        ByteSource, ElementType, LatentScale, Layout, MemorySource, Parameters, ReadFuture, Reading, StoredLatents,
        StoredSpace, StoredTensor, TensorInfo, read_images, read_latents, write_latents,
    };
    #[cfg(not(target_arch = "wasm32"))]
    pub use crate::io::{FileSource, Variant};
    pub use crate::tensor::DType;
}

/// Reports: facts about plans, and the progress and times of runs.
pub mod report {
    pub use crate::execution::{Listener, OnProgress, Preparing, RunReport, Submission};
    pub use crate::plan::{Memory, Plan, PlanFacts, PlaneExtents, RunFacts, StageFacts, Step};
    pub use crate::vae::Fallback;
}

/// Parts of the crate for the other crates of its repository and for its own tests. This module
/// and the hidden modules `cpu`, `demo`, `gpu`, `kernels`, `model` and `plan` are not part of the
/// API: they change without notice.
#[doc(hidden)]
pub mod internals {
    #[cfg(not(target_arch = "wasm32"))]
    pub use crate::io::shard_index;
    pub use crate::io::{array_file, clips, convert, images, latents, names, npy, safetensors};
    pub use crate::limits::PlannedUnits;
    pub use crate::model::config;
    pub use crate::printable::Printable;
    pub use crate::tensor::MAX_PIXELS;
    pub use crate::tensor::rgba8::{NOT_FINITE, rgba8};
    pub use crate::vae::{every_variant, odd_network, scale_latents, variants_for};
}

/// Compiles the examples of README and of the guide.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
#[doc = include_str!("../docs/guide/rust.md")]
struct Readme;
