//! Sums over runs of pixels, for each head: relu(k) v^T, and relu(k) alone.

use pulp::{Simd, WithSimd};

use crate::cpu::call::{Call, at, at4};
use crate::cpu::lanes::{dispatch, load, relu, store};
use crate::cpu::parallel::*;
use crate::cpu::stored::Stored;
use crate::kernels::linear_attention::SumsParams;

/// One head of one run.
struct Head<'a, 's, E> {
    /// `[pixels, c]`.
    x: &'a [E],
    channels: usize,
    /// First channel of the keys. Those of the values follow.
    key: usize,
    /// Channels of the head.
    head: usize,
    /// `[head + 1, head]`.
    sums: &'s mut [f32],
}

pub(super) fn run<E: Stored>(mut call: Call<'_>) {
    let p: SumsParams = call.params();
    let arch = call.arch;
    let head = at4(call.variant.number("HEAD4"));
    let [x, sums] = call.take();
    let channels = at4(p.channels4);
    let (heads, length) = (channels / (3 * head), (head + 1) * head);
    let x = &x.read::<E>()[..at(p.pixels) * channels];
    let runs = at(p.pixels.div_ceil(p.run));
    let sums =
        sums.write::<f32>()[at(p.sums_offset) * heads * length..].par_chunks_mut(length).take(runs * heads).enumerate();
    sums.for_each(|(index, sums)| {
        let first = index / heads * at(p.run) * channels;
        let x = &x[first..x.len().min(first + at(p.run) * channels)];
        dispatch(arch, Head { x, channels, key: (index % heads * 3 + 1) * head, head, sums });
    });
}

impl<E: Stored> WithSimd for Head<'_, '_, E> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { x, channels, key, head, sums } = self;
        let mut space = Vec::new();
        // Keys and values of each pixel.
        let (x, channels, key) = match E::floats(x) {
            Some(x) => (x, channels, key),
            None => {
                space.resize(x.len() / channels * 2 * head, 0.0);
                for (pixel, space) in x.chunks_exact(channels).zip(space.chunks_exact_mut(2 * head)) {
                    E::widen(&pixel[key..], space);
                }
                (space.as_slice(), 2 * head, 0)
            }
        };
        for lane in (0..head).step_by(S::F32_LANES) {
            let lanes = S::F32_LANES.min(head - lane);
            let mut keys = simd.splat_f32s(0.0);
            for pixel in x.chunks_exact(channels) {
                keys = simd.add_f32s(keys, relu(simd, load(simd, pixel, key + lane, lanes)));
            }
            store(simd, sums, head * head + lane, lanes, keys);
            for row in (0..head).step_by(4) {
                let mut products = [simd.splat_f32s(0.0); 4];
                for pixel in x.chunks_exact(channels) {
                    let value = load(simd, pixel, key + head + lane, lanes);
                    for (product, &key) in products.iter_mut().zip(&pixel[key + row..]) {
                        *product = simd.mul_add_e_f32s(relu(simd, simd.splat_f32s(key)), value, *product);
                    }
                }
                for (index, product) in products.into_iter().enumerate() {
                    store(simd, sums, (row + index) * head + lane, lanes, product);
                }
            }
        }
    }
}
