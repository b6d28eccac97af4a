//! Fuzz targets, one for each kind of input. Each takes any bytes, and panics if the library breaks
//! a promise. All of them check that the library does not panic and uses little memory.

mod files;
mod pictures;
mod plans;
mod texts;

use crate::allowance;

/// A function that takes any bytes, with its memory limit.
pub(crate) struct Target {
    /// Name of its binary and of its folder in the corpus.
    pub(crate) name: &'static str,
    run: fn(&[u8]),
    /// Bytes of memory that do not depend on the input: error messages, tables, data of the test
    /// itself.
    fixed: usize,
    /// Bytes of memory for each byte of the input.
    each: usize,
}

/// All targets. Their limits do not include the input itself.
pub(crate) const TARGETS: &[Target] = &[
    // Names and shapes, once as in the file and once as in the header.
    Target { name: "safetensors_header", run: files::safetensors_header, fixed: 16 << 10, each: 48 },
    // The same, plus translated names, copied shapes, and values as f32 that are written again.
    Target { name: "safetensors_file", run: files::safetensors_file, fixed: 64 << 10, each: 96 },
    Target { name: "npy", run: files::npy, fixed: 16 << 10, each: 24 },
    Target { name: "latents", run: files::latents, fixed: 16 << 10, each: 48 },
    Target { name: "shard_index", run: texts::shard_index, fixed: 16 << 10, each: 32 },
    Target { name: "config", run: texts::config, fixed: 64 << 10, each: 112 },
    Target { name: "memory_report", run: texts::memory_report, fixed: 64 << 10, each: 32 },
    // Image encoders have their own tables and windows.
    Target { name: "image_file", run: pictures::image_file, fixed: 4 << 20, each: 64 },
    // A plan is as large as the work it describes, not as its description. With the most steps
    // allowed it takes 400 MiB, and three times as much while it is spilled for a budget.
    Target { name: "plan_sound", run: plans::sound, fixed: 1536 << 20, each: 0 },
    Target { name: "plan_any", run: plans::any, fixed: 1536 << 20, each: 0 },
];

/// Runs `target` on `bytes`. Panics if it exceeds its memory limit.
pub(crate) fn run(target: &Target, bytes: &[u8]) {
    let allowed = target.fixed + target.each * bytes.len();
    let what = format!("{} of {} bytes", target.name, bytes.len());
    allowance::within(allowed, &what, || (target.run)(bytes));
}
