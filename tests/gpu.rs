//! Tests that run on an adapter, a GPU or a CPU Vulkan driver. Without one they fail instead of
//! being skipped.
#![expect(clippy::unwrap_used, reason = "tests")]

#[path = "gpu/budgets.rs"]
mod budgets;
#[path = "gpu/clips.rs"]
mod clips;
#[path = "gpu/decode.rs"]
mod decode;
#[path = "gpu/families.rs"]
mod families;
#[path = "gpu/fast.rs"]
mod fast;
#[path = "gpu/faults.rs"]
mod faults;
#[path = "gpu/kernels.rs"]
mod kernels;
#[path = "gpu/matrix_units.rs"]
mod matrix_units;
#[path = "gpu/memory.rs"]
mod memory;
#[path = "gpu/picture.rs"]
mod picture;
#[path = "gpu/preparing.rs"]
mod preparing;
#[path = "gpu/promises.rs"]
mod promises;
#[path = "gpu/published.rs"]
mod published;
#[path = "gpu/random_jobs.rs"]
mod random_jobs;
#[path = "gpu/streaming.rs"]
mod streaming;
#[path = "gpu/tiled_clips.rs"]
mod tiled_clips;
#[path = "gpu/tiling.rs"]
mod tiling;
#[path = "gpu/tuning.rs"]
mod tuning;
