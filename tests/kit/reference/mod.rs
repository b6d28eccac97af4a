//! Plain CPU twin of every kernel, under the stem of its shader: loops over the definition, without
//! factoring or tiling.
//!
//! Sums are f64, rounded once when the kernel stores them. Every access is checked: an index
//! outside its binding panics, and so does a launch with too few workgroups.

mod attention_finish;
mod attention_softmax;
mod conv2d_depthwise;
mod conv2d_direct;
mod copy_frames;
pub mod graph;
mod group_norm_apply;
mod group_norm_finish;
mod group_norm_stats;
mod image_check;
mod image_out;
pub mod interpreter;
mod linear_attention_apply;
mod linear_attention_finish;
mod linear_attention_sums;
mod matmul;
mod pixel_norm_apply;
mod planes_in;
mod planes_out;
mod regroup;
mod unfold;
mod winograd_in;
mod winograd_out;
mod winograd_weights;

use std::borrow::Cow;

use half::f16;
use wgvae::Storage;
use wgvae::kernels::{Value, Variant, WORKGROUP};

/// One launch: its variant, its parameters, and bindings 1, 2, and so on as bytes. A binding that
/// the variant does not use is empty. One that the launch writes becomes a copy at its first write.
pub struct Call<'a> {
    pub variant: &'a Variant,
    pub params: &'a [u8],
    pub workgroups: [u32; 3],
    pub bindings: Vec<Cow<'a, [u8]>>,
}

/// Returns the row or column that is read at `position` of `extent`. `None` if it is zero there.
/// `beyond` is 1 for mirrored pixels there, 2 for copies of the first and last, and 3 for pixels at
/// the opposite side.
fn seen_at(position: i64, extent: u32, beyond: u32) -> Option<i64> {
    let last = i64::from(extent) - 1;
    match (position, beyond) {
        (-1, 1) => Some(1.min(last)),
        (_, 1) if position == last + 1 => Some((last - 1).max(0)),
        (-1, 2) => Some(0),
        (_, 2) if position == last + 1 => Some(last),
        (-1, 3) => Some(last),
        (_, 3) if position == last + 1 => Some(0),
        _ => (0..=last).contains(&position).then_some(position),
    }
}

/// Returns the place of `row` in rows that begin with `row0` of `rows`. With `beyond` 3, the first
/// row follows the last.
fn place_of(row: i64, row0: i32, rows: u32, beyond: u32) -> usize {
    let place = row - i64::from(row0);
    at(if beyond == 3 { place.rem_euclid(i64::from(rows)) } else { place })
}

/// Runs the twin of the call's kernel.
pub fn run(call: &mut Call<'_>) {
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
        "pixel_norm_apply" => pixel_norm_apply::run(call),
        "planes_in" => planes_in::run(call),
        "planes_out" => planes_out::run(call),
        "regroup" => regroup::run(call),
        "unfold" => unfold::run(call),
        "matmul" | "matmul_quad" | "matmul_shared" | "matmul_matrix" => matmul::run(call),
        "winograd_in" | "winograd_in_pairs" => winograd_in::run(call),
        "winograd_out" | "winograd_out_pairs" => winograd_out::run(call),
        "winograd_weights" => winograd_weights::run(call),
        other => panic!("kernel {other:?} has no twin: add tests/kit/reference/{other}.rs"),
    }
}

impl Call<'_> {
    /// Returns the launch's `Params`.
    fn params<P: bytemuck::AnyBitPattern>(&self) -> P {
        bytemuck::pod_read_unaligned(self.params)
    }

    /// Returns the type of `alias name`.
    fn storage(&self, alias: &str) -> Storage {
        match self.variant.value(alias) {
            Some(Value::Type(text)) => storage_named(text),
            other => panic!("{}: alias {alias} is {other:?}", self.variant.file),
        }
    }

    /// Panics if the launch has fewer than `wanted` invocations along x (rows of x along y counted
    /// in).
    fn assert_covers(&self, wanted: u32) {
        let invocations = u64::from(self.workgroups[0]) * u64::from(self.workgroups[1]) * u64::from(WORKGROUP);
        assert!(invocations >= u64::from(wanted), "{}: {invocations} invocations of {wanted}", self.variant.file);
    }

    /// Returns all vec4 of binding `index` (1 is the first after `params`).
    fn vec4s(&self, index: usize, storage: Storage) -> Vec<[f32; 4]> {
        let bytes: &[u8] = &self.bindings[index - 1];
        bytes.chunks_exact(vec4_bytes(storage)).map(|bytes| load(bytes, storage)).collect()
    }

    /// Returns all numbers of binding `index`, an array of f32.
    fn floats(&self, index: usize) -> Vec<f32> {
        bytemuck::pod_collect_to_vec(&self.bindings[index - 1])
    }

    /// Returns element `at` of binding `index`.
    fn get(&self, index: usize, storage: Storage, at: usize) -> [f32; 4] {
        let bytes = vec4_bytes(storage);
        load(&self.bindings[index - 1][at * bytes..][..bytes], storage)
    }

    /// Writes element `at` of binding `index`.
    fn set(&mut self, index: usize, storage: Storage, at: usize, value: [f32; 4]) {
        let bytes = vec4_bytes(storage);
        store(&mut self.bindings[index - 1].to_mut()[at * bytes..][..bytes], storage, value);
    }

    /// Writes number `at` of binding `index`, an array of f32.
    fn set_float(&mut self, index: usize, at: usize, value: f32) {
        self.bindings[index - 1].to_mut()[at * 4..][..4].copy_from_slice(&value.to_le_bytes());
    }
}

fn storage_named(text: &str) -> Storage {
    let known = [Storage::F32, Storage::F16, Storage::PackedF16];
    let is_it = |storage: &Storage| [storage.wgsl_type(), storage.wgsl_pair()].contains(&text);
    known.into_iter().find(is_it).unwrap_or_else(|| panic!("type {text:?}"))
}

fn vec4_bytes(storage: Storage) -> usize {
    at(storage.vec4_bytes())
}

fn load(bytes: &[u8], storage: Storage) -> [f32; 4] {
    match storage {
        Storage::F32 => bytemuck::pod_read_unaligned(bytes),
        Storage::F16 | Storage::PackedF16 | Storage::FastF16 => {
            bytemuck::pod_read_unaligned::<[f16; 4]>(bytes).map(f16::to_f32)
        }
    }
}

fn store(bytes: &mut [u8], storage: Storage, value: [f32; 4]) {
    match storage {
        Storage::F32 => bytes.copy_from_slice(bytemuck::bytes_of(&value)),
        Storage::F16 | Storage::PackedF16 | Storage::FastF16 => {
            bytes.copy_from_slice(bytemuck::bytes_of(&value.map(f16::from_f32)));
        }
    }
}

/// Computes four channels with a function of the channel.
fn each(value: impl Fn(usize) -> f64) -> [f32; 4] {
    [0, 1, 2, 3].map(|channel| round(value(channel)))
}

#[expect(clippy::cast_possible_truncation, reason = "rounded where the kernel stores")]
fn round(value: f64) -> f32 {
    value as f32
}

/// Value of `ACTIVATION` for `ReLU` in kernels.
const RELU: u32 = 2;

/// Applies the function that a kernel's `ACTIVATION` names.
fn activate(value: f64, activation: u32) -> f64 {
    match activation {
        0 => value,
        1 => value / (1.0 + (-value).exp()),
        // Values that are not finite stay.
        RELU if value.is_finite() => value.max(0.0),
        RELU => value,
        other => panic!("activation {other}"),
    }
}

/// Converts a parameter to an index. Negative or absurd numbers panic.
fn at<N: TryInto<usize> + Copy + std::fmt::Display>(number: N) -> usize {
    number.try_into().unwrap_or_else(|_| panic!("{number} is no index"))
}

/// Returns `matrix x`, for plain Winograd matrices.
fn times<const R: usize, const C: usize>(matrix: &[[f64; C]; R], x: &[f64; C]) -> [f64; R] {
    std::array::from_fn(|row| (0..C).map(|column| matrix[row][column] * x[column]).sum())
}

/// Returns `matrix x matrix^T`, computed column by column, then row by row.
fn times_both<const R: usize, const C: usize>(matrix: &[[f64; C]; R], x: &[[f64; C]; C]) -> [[f64; R]; R] {
    let columns: [[f64; R]; C] =
        std::array::from_fn(|column| times(matrix, &std::array::from_fn(|row| x[row][column])));
    std::array::from_fn(|row| times(matrix, &std::array::from_fn(|column| columns[column][row])))
}

/// Points of Winograd F(4x4, 3x3): 1 / sqrt(2) and sqrt(2), with 0 and infinity.
const A: f64 = std::f64::consts::FRAC_1_SQRT_2;
const B: f64 = std::f64::consts::SQRT_2;
