//! Catalogue of problems: launches of single kernels with data, for the tests on a GPU.
//!
//! Shapes are those of published decoders at reduced size, and awkward ones. `WGVAE_PROBLEMS=REGEX`
//! selects some; each problem's name is one line. `WGVAE_BRIEF=1` takes one for each kernel,
//! storage and set of flags.

mod attention;
pub mod compare;
mod conv2d_depthwise;
mod conv2d_direct;
mod edges;
mod frames;
mod group_norm;
mod linear_attention;
mod matmul;
mod regroup;
mod unfold;
mod winograd;

use std::collections::HashSet;

use regex::Regex;
use wgvae::Storage;
use wgvae::kernels::weights::store;
use wgvae::kernels::{Launch, Value, Variant};
use wgvae::model::graph::Border;

/// Comparison of a binding's elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Elements {
    /// Numbers in this storage, within the tolerance.
    Numbers(Storage),
    /// Equal numbers, or NaN on both sides, for kernels that do not round.
    Exact(Storage),
    /// Bytes of pictures, at most 1 level apart.
    Levels,
}

/// Content of a binding before the launch.
#[derive(Debug, Clone)]
pub struct Data {
    pub elements: Elements,
    pub bytes: Vec<u8>,
}

/// Largest error of a kernel compared with its twin.
#[derive(Debug, Clone, Copy)]
pub struct Tolerance {
    /// Normalised mean square error.
    pub nmse: f64,
    /// Maximum error: max |a - b| / max |b|.
    pub max_abs: f64,
}

/// Launch with its data.
#[derive(Debug, Clone)]
pub struct Problem {
    /// Name of the problem, one line.
    pub name: String,
    pub launch: Launch,
    /// Bindings 1, 2, and so on; `None` if the variant does not use one.
    pub bindings: Vec<Option<Data>>,
    pub tolerance: Tolerance,
}

pub const STORAGES: [Storage; 3] = [Storage::F32, Storage::F16, Storage::PackedF16];

/// Borders of filters that keep the size. The first is that of most networks.
const BORDERS: [Border; 4] = [Border::Around, Border::Mirror, Border::Copies, Border::Opposite];

/// Returns all problems that `WGVAE_PROBLEMS` selects.
pub fn all() -> Vec<Problem> {
    let mut problems = Vec::new();
    problems.extend(attention::problems());
    problems.extend(conv2d_depthwise::problems());
    problems.extend(conv2d_direct::problems());
    problems.extend(edges::problems());
    problems.extend(frames::problems());
    problems.extend(group_norm::problems());
    problems.extend(linear_attention::problems());
    problems.extend(matmul::problems());
    problems.extend(regroup::problems());
    problems.extend(unfold::problems());
    problems.extend(winograd::problems());
    if let Some(filter) = std::env::var_os("WGVAE_PROBLEMS") {
        let filter = filter.to_string_lossy();
        let filter = Regex::new(&filter).unwrap_or_else(|error| panic!("WGVAE_PROBLEMS: {error}"));
        problems.retain(|problem| filter.is_match(&problem.name));
    }
    if std::env::var_os("WGVAE_BRIEF").is_some() {
        let mut seen = HashSet::new();
        problems.retain(|problem| seen.insert(kind(&problem.launch.variant)));
    }
    problems
}

/// Returns the kernel of a variant, its flags, and the types of its bindings.
fn kind(variant: &Variant) -> (&'static str, Vec<String>) {
    let kept = variant.values.iter().filter(|(_, value)| matches!(value, Value::Type(_) | Value::Bool(_)));
    (variant.file, kept.map(|(name, value)| format!("{name} {value:?}")).collect())
}

/// Returns the tolerance for products of a few hundred terms. They are summed in f32, in another
/// order than the twin's f64; f16 rounds once, when it stores.
pub fn tolerance(storage: Storage) -> Tolerance {
    match storage {
        Storage::F32 => Tolerance { nmse: 1e-11, max_abs: 2e-5 },
        // Both round to the nearest half, but sums differ, and so may the half: by one place of at
        // most 2^-10, and seldom.
        Storage::PackedF16 => Tolerance { nmse: 1e-8, max_abs: 1e-3 },
        // WGSL lets drivers truncate their own halves.
        Storage::F16 | Storage::FastF16 => Tolerance { nmse: 1e-6, max_abs: 1e-3 },
    }
}

/// Returns `count` numbers in [-1, 1) times `scale`, the same every time.
pub fn noise(seed: u64, count: u32, scale: f32) -> Vec<f32> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        u16::try_from(state >> 48).map_or(0.0, f32::from) / 32_768.0 - 1.0
    };
    (0..count).map(|_| next() * scale).collect()
}

/// Returns random content of `vec4s` elements.
pub fn random(seed: u64, storage: Storage, vec4s: u32, scale: f32) -> Option<Data> {
    numbers(storage, &noise(seed, vec4s * 4, scale))
}

/// Returns content with these numbers.
pub fn numbers(storage: Storage, values: &[f32]) -> Option<Data> {
    Some(Data { elements: Elements::Numbers(storage), bytes: store(values, storage) })
}

/// Returns room for `vec4s` elements, NaN before the launch.
pub fn room(storage: Storage, vec4s: u32) -> Option<Data> {
    let bytes = usize::try_from(u64::from(vec4s) * storage.vec4_bytes()).unwrap();
    Some(Data { elements: Elements::Numbers(storage), bytes: vec![0xff; bytes] })
}
