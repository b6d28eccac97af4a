//! The kernels on the host, under the stems of their shaders, with the same parameters and
//! bindings.
//!
//! Each splits its output among the threads of the current pool, so that no two threads write the
//! same memory, and computes whole vectors of neighbouring channels. The order of every sum depends
//! neither on the split nor on the number of threads.

mod attention_finish;
mod attention_softmax;
mod border;
mod conv2d_depthwise;
mod conv2d_direct;
mod copy_frames;
mod group_norm_apply;
mod group_norm_finish;
mod group_norm_stats;
mod image_check;
mod image_out;
mod linear_attention_apply;
mod linear_attention_finish;
mod linear_attention_sums;
mod matmul;
mod norm_table;
mod pixel_norm_apply;
mod planes_in;
mod planes_out;
mod points;
mod regroup;
mod unfold;
mod winograd_in;
mod winograd_out;
mod winograd_weights;

use half::f16;

use super::call::Call;

/// Runs a kernel for the numbers that its variant stores.
macro_rules! stored {
    ($kernel:ident, $call:ident, $stored:literal) => {
        if $call.variant.holds_f32($stored) { $kernel::run::<f32>($call) } else { $kernel::run::<f16>($call) }
    };
    ($kernel:ident, $call:ident, $stored:literal, $output:literal) => {
        match [$stored, $output].map(|name| $call.variant.holds_f32(name)) {
            [true, true] => $kernel::run::<f32, f32>($call),
            [true, false] => $kernel::run::<f32, f16>($call),
            [false, true] => $kernel::run::<f16, f32>($call),
            [false, false] => $kernel::run::<f16, f16>($call),
        }
    };
}

/// Runs the kernel of a launch. Storage is f32 or packed halves; transformed images and filters are
/// f32.
///
/// # Panics
/// Panics if there is no such kernel on the host, which is a bug: the rules for the host choose no
/// other.
pub fn run(call: Call<'_>) {
    match call.variant.file {
        "attention_finish" => stored!(attention_finish, call, "Stored"),
        "attention_softmax" => stored!(attention_softmax, call, "Stored"),
        "conv2d_depthwise" => stored!(conv2d_depthwise, call, "Stored", "Output"),
        "conv2d_direct" => stored!(conv2d_direct, call, "Stored", "Output"),
        "copy_frames" => stored!(copy_frames, call, "Stored"),
        "group_norm_apply" => stored!(group_norm_apply, call, "Stored"),
        "group_norm_finish" => group_norm_finish::run(call),
        "group_norm_stats" => stored!(group_norm_stats, call, "Stored"),
        "image_check" => image_check::run(call),
        "image_out" => image_out::run(call),
        "linear_attention_apply" => stored!(linear_attention_apply, call, "Stored"),
        "linear_attention_finish" => linear_attention_finish::run(call),
        "linear_attention_sums" => stored!(linear_attention_sums, call, "Stored"),
        "matmul" => stored!(matmul, call, "Stored", "Output"),
        "pixel_norm_apply" => stored!(pixel_norm_apply, call, "Stored"),
        "planes_in" => stored!(planes_in, call, "Stored"),
        "planes_out" => planes_out::run(call),
        "regroup" => stored!(regroup, call, "Stored", "Output"),
        "unfold" => stored!(unfold, call, "Stored"),
        "winograd_in_pairs" => stored!(winograd_in, call, "Pair"),
        "winograd_out_pairs" => stored!(winograd_out, call, "Pair"),
        "winograd_weights" => stored!(winograd_weights, call, "Stored"),
        other => panic!("kernel {other:?} does not run on the host"),
    }
}
