//! Tests of the `wgvae` command, run as a process. They need an adapter (a GPU or a CPU Vulkan
//! driver) and fail without one.
#![expect(clippy::unwrap_used, reason = "tests")]

#[path = "cli/all_kernels.rs"]
mod all_kernels;
#[path = "cli/bad_input.rs"]
mod bad_input;
#[path = "cli/clips.rs"]
mod clips;
#[path = "cli/commands.rs"]
mod commands;
#[path = "cli/decode.rs"]
mod decode;
#[path = "cli/doctor.rs"]
mod doctor;
#[path = "cli/encode.rs"]
mod encode;
#[path = "cli/encode_input.rs"]
mod encode_input;
#[path = "cli/families.rs"]
mod families;
#[path = "cli/folders.rs"]
mod folders;
#[path = "cli/hub.rs"]
mod hub;
#[path = "cli/interrupt.rs"]
mod interrupt;
#[path = "cli/memory.rs"]
mod memory;
#[path = "cli/opacity.rs"]
mod opacity;
#[path = "cli/plan.rs"]
mod plan;
#[path = "cli/preview.rs"]
mod preview;
#[path = "cli/readme.rs"]
mod readme;
#[cfg(unix)]
#[path = "cli/release.rs"]
mod release;
#[path = "cli/roundtrip.rs"]
mod roundtrip;
#[path = "cli/shells.rs"]
mod shells;
#[path = "cli/stdio.rs"]
mod stdio;
#[path = "cli/tiling.rs"]
mod tiling;
#[path = "cli/tool.rs"]
mod tool;
#[path = "cli/tuning.rs"]
mod tuning;
#[path = "cli/verbosity.rs"]
mod verbosity;
#[cfg(target_os = "linux")]
#[path = "cli/view.rs"]
mod view;
