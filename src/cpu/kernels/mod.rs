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

use super::call::Call;

/// Runs the kernel of a launch. Storage is f32.
///
/// # Panics
/// Panics if there is no such kernel on the host, which is a bug: the rules for the host choose no
/// other.
pub fn run(call: Call<'_>) {
    match call.variant.file {
        "attention_finish" => attention_finish::run(call),
        "attention_softmax" => attention_softmax::run(call),
        "conv2d_depthwise" => conv2d_depthwise::run(call),
        "conv2d_direct" => conv2d_direct::run(call),
        "copy_frames" => copy_frames::run(call),
        "group_norm_apply" => group_norm_apply::run(call),
        "group_norm_finish" => group_norm_finish::run(call),
        "group_norm_stats" => group_norm_stats::run(call),
        "image_check" => image_check::run(call),
        "image_out" => image_out::run(call),
        "linear_attention_apply" => linear_attention_apply::run(call),
        "linear_attention_finish" => linear_attention_finish::run(call),
        "linear_attention_sums" => linear_attention_sums::run(call),
        "matmul" => matmul::run(call),
        "pixel_norm_apply" => pixel_norm_apply::run(call),
        "planes_in" => planes_in::run(call),
        "planes_out" => planes_out::run(call),
        "regroup" => regroup::run(call),
        "unfold" => unfold::run(call),
        "winograd_in_pairs" => winograd_in::run(call),
        "winograd_out_pairs" => winograd_out::run(call),
        "winograd_weights" => winograd_weights::run(call),
        other => panic!("kernel {other:?} does not run on the host"),
    }
}
