//! Tests that need no adapter: shaders as text, plans as values, files as bytes.
#![expect(clippy::unwrap_used, reason = "tests")]

#[path = "../fuzz/src/allowance.rs"]
mod allowance;
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
#[path = "support/clip.rs"]
mod clip;
#[path = "cpu/clip_plans.rs"]
mod clip_plans;
#[path = "support/clip_runs.rs"]
mod clip_runs;
#[path = "cpu/clips/mod.rs"]
mod clips;
#[path = "cpu/config.rs"]
mod config;
#[path = "cpu/convert.rs"]
mod convert;
#[path = "support/each_network.rs"]
mod each_network;
#[path = "cpu/families.rs"]
mod families;
#[path = "support/family.rs"]
mod family;
#[path = "support/fixture.rs"]
mod fixture;
#[path = "support/formula.rs"]
mod formula;
#[path = "cpu/futures.rs"]
mod futures;
#[path = "cpu/fuzz_corpus.rs"]
mod fuzz_corpus;
#[path = "../fuzz/src/targets/mod.rs"]
mod fuzz_targets;
#[path = "support/golden.rs"]
mod golden;
#[path = "reference/graph.rs"]
mod graph;
#[path = "cpu/graphs.rs"]
mod graphs;
#[path = "support/hollow.rs"]
mod hollow;
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
#[path = "reference/interpreter.rs"]
mod interpreter;
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
#[path = "support/networks.rs"]
mod networks;
#[path = "cpu/npy.rs"]
mod npy;
#[path = "cpu/packing.rs"]
mod packing;
#[path = "cpu/pictures.rs"]
mod pictures;
#[path = "support/plan_checks.rs"]
mod plan_checks;
#[path = "cpu/plan_properties.rs"]
mod plan_properties;
#[path = "cpu/plan_snapshots.rs"]
mod plan_snapshots;
#[path = "support/png_header.rs"]
mod png_header;
#[path = "cpu/posterior.rs"]
mod posterior;
#[path = "problems/mod.rs"]
mod problems;
#[path = "cpu/quality.rs"]
mod quality;
#[path = "reference/mod.rs"]
mod reference;
#[path = "support/rust_uses.rs"]
mod rust_uses;
#[path = "cpu/safetensors.rs"]
mod safetensors;
#[path = "cpu/shaders.rs"]
mod shaders;
#[path = "support/snapshot.rs"]
mod snapshot;
#[path = "support/sweep.rs"]
mod sweep;
#[path = "cpu/tiling.rs"]
mod tiling;
#[path = "support/written.rs"]
mod written;
