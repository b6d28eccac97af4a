//! One function for each thing that is parsed: it takes any bytes, and panics when the library
//! breaks a promise. That the library does not panic itself, and takes little memory, holds for
//! all.

mod files;
#[cfg(feature = "cli")]
mod pictures;
mod plans;
mod texts;

use crate::allowance;

/// A function for any bytes, and the memory that it may take.
pub(crate) struct Target {
    /// Of its binary and its folder of the corpus.
    pub(crate) name: &'static str,
    run: fn(&[u8]),
    /// Bytes of memory whatever the input: error messages, tables, what a test itself holds.
    fixed: usize,
    /// Bytes of memory for each byte of the input.
    each: usize,
}

/// Every target. Memory besides the input itself.
pub(crate) const TARGETS: &[Target] = &[
    // Names and shapes, as the file has them and as the header has them.
    Target { name: "safetensors_header", run: files::safetensors_header, fixed: 16 << 10, each: 48 },
    // The same, names translated, shapes copied; values as f32 and written out again.
    Target { name: "safetensors_file", run: files::safetensors_file, fixed: 64 << 10, each: 96 },
    Target { name: "npy", run: files::npy, fixed: 16 << 10, each: 24 },
    Target { name: "latents", run: files::latents, fixed: 16 << 10, each: 48 },
    Target { name: "shard_index", run: texts::shard_index, fixed: 16 << 10, each: 32 },
    Target { name: "config", run: texts::config, fixed: 64 << 10, each: 112 },
    Target { name: "memory_report", run: texts::memory_report, fixed: 64 << 10, each: 32 },
    // Encoders have tables and windows of their own.
    #[cfg(feature = "cli")]
    Target { name: "image_file", run: pictures::image_file, fixed: 4 << 20, each: 64 },
    // Plans are as large as what they describe, not as their description: with the most steps that
    // there may be, 400 MiB, and while one is spilled for a budget, three times as much.
    Target { name: "plan_sound", run: plans::sound, fixed: 1536 << 20, each: 0 },
    Target { name: "plan_any", run: plans::any, fixed: 1536 << 20, each: 0 },
];

/// Gives `bytes` to `target`, and panics if it takes more memory than it may.
pub(crate) fn run(target: &Target, bytes: &[u8]) {
    let allowed = target.fixed + target.each * bytes.len();
    let what = format!("{} of {} bytes", target.name, bytes.len());
    allowance::within(allowed, &what, || (target.run)(bytes));
}
