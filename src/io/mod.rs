//! Readers and writers of checkpoints, arrays, images and clips. This layer knows nothing of
//! graphs, plans or devices.

pub mod array_file;
pub mod clips;
pub mod convert;
pub mod images;
pub mod latents;
pub mod names;
pub mod npy;
pub mod safetensors;

mod checkpoint;
#[cfg(not(target_arch = "wasm32"))]
mod file;
#[cfg(not(target_arch = "wasm32"))]
mod folder;
#[cfg(not(target_arch = "wasm32"))]
pub mod shard_index;
mod source;
#[cfg(not(target_arch = "wasm32"))]
mod weight_files;

pub use self::checkpoint::{Checkpoint, LatentScale, Parameters, StoredTensor};
#[cfg(not(target_arch = "wasm32"))]
pub use self::file::FileSource;
pub use self::images::read_images;
pub use self::latents::{StoredLatents, StoredSpace, read_latents, write_latents};
pub use self::names::Layout;
pub use self::safetensors::{ElementType, TensorInfo};
pub use self::source::{ByteSource, MemorySource, ReadFuture, Reading};
#[cfg(not(target_arch = "wasm32"))]
pub use self::weight_files::Variant;
#[cfg(feature = "hub")]
pub(crate) use self::weight_files::weight_files;
