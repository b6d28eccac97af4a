//! Readers and writers of checkpoints, arrays, images and clips. This layer knows nothing of
//! graphs, plans or devices.

#[cfg(feature = "cli")]
pub mod clip_files;
pub mod clips;
pub mod convert;
#[cfg(feature = "cli")]
pub mod image_file;
pub mod names;
pub mod npy;
#[cfg(feature = "cli")]
pub mod part_file;
#[cfg(feature = "cli")]
pub mod picture;
pub mod safetensors;

mod array_file;
mod checkpoint;
#[cfg(not(target_arch = "wasm32"))]
mod file;
#[cfg(not(target_arch = "wasm32"))]
mod folder;
mod images;
mod latents;
#[cfg(not(target_arch = "wasm32"))]
pub mod shard_index;
mod source;
#[cfg(not(target_arch = "wasm32"))]
mod weight_files;

pub use self::checkpoint::{Checkpoint, LatentScale, Parameters, StoredTensor};
#[cfg(not(target_arch = "wasm32"))]
pub use self::file::FileSource;
pub use self::images::read_images;
pub use self::latents::{StoredLatents, read_latents, write_latents};
pub use self::names::Layout;
pub use self::safetensors::{ElementType, TensorInfo};
pub use self::source::{ByteSource, MemorySource, ReadFuture};
#[cfg(not(target_arch = "wasm32"))]
pub use self::weight_files::Variant;
#[cfg(feature = "hub")]
pub(crate) use self::weight_files::weight_files;
