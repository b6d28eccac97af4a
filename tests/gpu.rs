//! Tests that run on an adapter, a GPU or a CPU Vulkan driver. Without one they fail instead of
//! being skipped.
#![expect(clippy::unwrap_used, reason = "tests")]

#[path = "gpu/budgets.rs"]
mod budgets;
#[path = "support/clip.rs"]
mod clip;
#[path = "support/clip_runs.rs"]
mod clip_runs;
#[path = "gpu/clips.rs"]
mod clips;
#[path = "gpu/decode.rs"]
mod decode;
#[path = "support/each_network.rs"]
mod each_network;
#[path = "gpu/families.rs"]
mod families;
#[path = "support/family.rs"]
mod family;
#[path = "gpu/fast.rs"]
mod fast;
#[path = "gpu/faults.rs"]
mod faults;
#[path = "support/formula.rs"]
mod formula;
#[path = "support/golden.rs"]
mod golden;
#[path = "support/hollow.rs"]
mod hollow;
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
#[path = "problems/mod.rs"]
mod problems;
#[path = "gpu/promises.rs"]
mod promises;
#[path = "gpu/published.rs"]
mod published;
#[path = "gpu/random_jobs.rs"]
mod random_jobs;
#[path = "reference/mod.rs"]
mod reference;
#[path = "gpu/streaming.rs"]
mod streaming;
#[path = "support/sweep.rs"]
mod sweep;
#[path = "gpu/tiled_clips.rs"]
mod tiled_clips;
#[path = "gpu/tiling.rs"]
mod tiling;
#[path = "gpu/tuning.rs"]
mod tuning;
#[path = "support/written.rs"]
mod written;
