//! Tests that need no adapter: shaders as text, plans as values, files as bytes.
#![expect(clippy::unwrap_used, reason = "tests")]

#[path = "cpu/arguments.rs"]
mod arguments;
#[path = "cpu/batch_norms.rs"]
mod batch_norms;
#[path = "cpu/budget_sweep.rs"]
mod budget_sweep;
#[path = "cpu/budgets.rs"]
mod budgets;
#[path = "cpu/checkpoint.rs"]
mod checkpoint;
#[path = "cpu/circles.rs"]
mod circles;
#[path = "cpu/clip_plans.rs"]
mod clip_plans;
#[path = "cpu/clips/mod.rs"]
mod clips;
#[path = "cpu/config.rs"]
mod config;
#[path = "cpu/convert.rs"]
mod convert;
#[path = "cpu/families.rs"]
mod families;
#[path = "cpu/futures.rs"]
mod futures;
#[path = "cpu/fuzz_corpus.rs"]
mod fuzz_corpus;
#[path = "../fuzz/src/targets/mod.rs"]
mod fuzz_targets;
#[path = "cpu/graphs.rs"]
mod graphs;
#[path = "cpu/host_decodes.rs"]
mod host_decodes;
#[path = "cpu/host_kernels.rs"]
mod host_kernels;
#[path = "cpu/image_files.rs"]
mod image_files;
#[path = "cpu/interface.rs"]
mod interface;
#[path = "cpu/interpret.rs"]
mod interpret;
#[path = "cpu/key_lists.rs"]
mod key_lists;
#[path = "cpu/latents.rs"]
mod latents;
#[path = "cpu/launches/mod.rs"]
mod launches;
#[path = "cpu/layers.rs"]
mod layers;
#[path = "cpu/manifest.rs"]
mod manifest;
#[path = "cpu/matrix_units.rs"]
mod matrix_units;
#[path = "cpu/memory_report.rs"]
mod memory_report;
#[path = "cpu/memory_targets.rs"]
mod memory_targets;
#[path = "cpu/names.rs"]
mod names;
#[path = "cpu/npy.rs"]
mod npy;
#[path = "cpu/packing.rs"]
mod packing;
#[path = "cpu/pictures.rs"]
mod pictures;
#[path = "cpu/plan_properties.rs"]
mod plan_properties;
#[path = "cpu/plan_snapshots.rs"]
mod plan_snapshots;
#[path = "cpu/posterior.rs"]
mod posterior;
#[path = "cpu/quality.rs"]
mod quality;
#[path = "cpu/safetensors.rs"]
mod safetensors;
#[path = "cpu/shaders.rs"]
mod shaders;
#[path = "cpu/tiling.rs"]
mod tiling;

use test_kit::allowance;
