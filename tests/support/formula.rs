//! The deterministic weights of the fixtures: see `tests/fixtures/make_fixtures.py`, which states the formula.

use std::collections::BTreeMap;

use wgvae::HostTensor;

/// Value `index` of the tensor `name`, in [-1, 1).
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

fn fill(name: &str, count: usize, offset: f32, scale: f32) -> Vec<f32> {
    let seed = fnv1a64(name);
    (0..count as u64).map(|index| offset + scale * unit(seed, index)).collect()
}

/// The weight `name` of `shape`.
pub(crate) fn weight(name: &str, shape: &[usize]) -> HostTensor {
    let count = shape.iter().product();
    // Norms.
    let is_norm = shape.len() == 1 || name.ends_with(".gamma");
    let data = if name == "bn.running_mean" {
        fill(name, count, 0.0, 1.0)
    } else if name == "bn.running_var" {
        fill(name, count, 1.5, 1.2)
    } else if name.ends_with(".bias") {
        fill(name, count, 0.0, 0.17)
    } else if is_norm {
        fill(name, count, 1.0, 0.35)
    } else {
        let fan_in: usize = shape[1..].iter().product();
        #[expect(clippy::cast_possible_truncation, clippy::cast_precision_loss, reason = "the formula says so")]
        let gain = if shape.len() == 5 && name == "decoder.conv_out.weight" { 2.0 } else { 1.0 };
        #[expect(clippy::cast_possible_truncation, clippy::cast_precision_loss, reason = "the formula says so")]
        let scale = (gain * (3.0 / fan_in as f64).sqrt()) as f32;
        fill(name, count, 0.0, scale)
    };
    HostTensor { shape: shape.to_vec(), data }
}

/// The latents of `shape`.
pub(crate) fn latents(shape: &[usize]) -> HostTensor {
    input("latents", shape, 1.7)
}

/// The input `name` of `shape`.
pub(crate) fn input(name: &str, shape: &[usize], scale: f32) -> HostTensor {
    HostTensor { shape: shape.to_vec(), data: fill(name, shape.iter().product(), 0.0, scale) }
}

/// All weights of the decoder that `config` describes.
pub(crate) fn decoder(config: &wgvae::AutoencoderConfig) -> BTreeMap<String, HostTensor> {
    let limits = wgvae::DeviceLimits::webgpu_default();
    let size = wgvae::Size { width: 8, height: 8 };
    let plan =
        wgvae::plan_decode(config, size, &limits, wgvae::Storage::F32, true, &wgvae::DecodeOptions::default()).unwrap();
    of(&plan.weights)
}

/// The tensors of files that `weights` take something of.
pub(crate) fn of(weights: &[wgvae::plan::WeightUse]) -> BTreeMap<String, HostTensor> {
    let tensor = |used: &wgvae::plan::WeightUse| {
        let shape: Vec<usize> = used.file_shape()?.iter().map(|&extent| usize::try_from(extent).unwrap()).collect();
        Some((used.name.clone(), weight(&used.name, &shape)))
    };
    weights.iter().filter_map(tensor).collect()
}
