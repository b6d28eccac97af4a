//! Deterministic weights of the fixtures. `tests/fixtures/make_fixtures.py` states the formula.

use std::collections::BTreeMap;
use std::ops::Range;

use wgvae::HostTensor;

/// Returns value `index` of the tensor with this seed, in [-1, 1).
fn unit(seed: u64, index: u64) -> f32 {
    let mut z = seed.wrapping_add((index + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15));
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^= z >> 31;
    #[expect(clippy::cast_precision_loss, reason = "24 bits fit f32 exactly")]
    let top = (z >> 40) as f32;
    top / 8_388_608.0 - 1.0
}

fn fnv1a64(name: &str) -> u64 {
    name.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

/// Returns values `range` of the tensor `name`, around `offset`.
fn fill(name: &str, range: Range<u64>, offset: f32, scale: f32) -> Vec<f32> {
    let seed = fnv1a64(name);
    range.map(|index| offset + scale * unit(seed, index)).collect()
}

/// Returns the weight `name` of `shape`, as in the file.
pub fn weight(name: &str, shape: &[usize]) -> HostTensor {
    let count: usize = shape.iter().product();
    HostTensor { shape: shape.to_vec(), data: part_of_weight(name, shape, 0..count as u64) }
}

/// Returns values `range` of that weight.
pub fn part_of_weight(name: &str, shape: &[usize], range: Range<u64>) -> Vec<f32> {
    let (offset, scale) = match name.rsplit('.').next() {
        Some("bias") => (0.0, 0.17),
        Some("running_mean") => (0.0, 1.0),
        Some("running_var") => (1.5, 1.2),
        Some("gamma") => (1.0, 0.35),
        _ if shape.len() == 1 => (1.0, 0.35),
        _ => {
            let fan_in: usize = shape[1..].iter().product();
            let times = if name == "decoder.conv_out.weight" && shape.len() == 5 { 2.0 } else { 1.0 };
            #[expect(clippy::cast_possible_truncation, clippy::cast_precision_loss, reason = "the formula says so")]
            let scale = (times * (3.0 / fan_in as f64).sqrt()) as f32;
            (0.0, scale)
        }
    };
    fill(name, range, offset, scale)
}

/// Returns the latents of `shape`.
pub fn latents(shape: &[usize]) -> HostTensor {
    input("latents", shape, 1.7)
}

/// Returns the input `name` of `shape`, within -`scale` and `scale`.
pub fn input(name: &str, shape: &[usize], scale: f32) -> HostTensor {
    let count: usize = shape.iter().product();
    HostTensor { shape: shape.to_vec(), data: fill(name, 0..count as u64, 0.0, scale) }
}

/// Returns all weights of the decoder that `config` describes.
pub fn decoder(config: &wgvae::config::AutoencoderConfig) -> BTreeMap<String, HostTensor> {
    weights(&wgvae::model::networks::decoder_tensors(config))
}

/// Returns the weights of these names and shapes.
pub fn weights(tensors: &BTreeMap<String, Vec<u64>>) -> BTreeMap<String, HostTensor> {
    let shape = |shape: &Vec<u64>| -> Vec<usize> {
        shape.iter().map(|&extent| usize::try_from(extent).expect("a small shape")).collect()
    };
    tensors.iter().map(|(name, extents)| (name.clone(), weight(name, &shape(extents)))).collect()
}
