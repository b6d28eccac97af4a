//! y = activation(x * scale[c] + shift[c]).

use pulp::{Simd, WithSimd};

use super::norm_table::NormTable;
use crate::cpu::call::{Call, at4};
use crate::cpu::lanes::{Activate, dispatch, load, store};
use crate::cpu::parallel::*;
use crate::cpu::stored::Stored;
use crate::kernels::group_norm::ApplyParams;

/// One pixel.
struct Pixel<'a, 'y, E> {
    x: &'a [E],
    norm: &'a NormTable,
    activate: Activate,
    y: &'y mut [E],
}

pub(super) fn run<E: Stored>(mut call: Call<'_>) {
    let p: ApplyParams = call.params();
    let arch = call.arch;
    let activate = Activate::of(call.variant);
    let [x, norm, y] = call.take();
    let channels = at4(p.channels4);
    let norm = NormTable::new(norm.read(), channels);
    let x = x.read::<E>()[at4(p.x_offset)..][..at4(p.elements)].par_chunks(channels);
    let y = y.write::<E>()[at4(p.y_offset)..].par_chunks_mut(at4(p.y_pixel4));
    x.zip(y).for_each(|(x, y)| dispatch(arch, Pixel { x, norm: &norm, activate, y }));
}

impl<E: Stored> WithSimd for Pixel<'_, '_, E> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { x, norm, activate, y } = self;
        for channel in (0..x.len()).step_by(S::F32_LANES) {
            let count = S::F32_LANES.min(x.len() - channel);
            let (scale, shift) = (load(simd, &norm.scale, channel, count), load(simd, &norm.shift, channel, count));
            let value = simd.mul_add_e_f32s(load(simd, x, channel, count), scale, shift);
            store(simd, y, channel, count, activate.apply(simd, value));
        }
    }
}
