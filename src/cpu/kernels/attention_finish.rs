//! y = accumulated / sum of the streaming softmax, row by row.

use crate::cpu::call::{Call, at, at4};
use crate::cpu::parallel::*;
use crate::cpu::stored::Stored;
use crate::kernels::attention::FinishParams;

pub(super) fn run<E: Stored>(mut call: Call<'_>) {
    let p: FinishParams = call.params();
    let [accumulated, state, y] = call.take();
    let channels = at4(p.channels4);
    let rows = accumulated.read::<f32>().par_chunks(channels).zip(state.read::<f32>().par_chunks(2));
    let y = y.write::<E>()[at4(p.y_offset)..].par_chunks_mut(channels);
    rows.zip(y).take(at(p.queries)).for_each(|((accumulated, state), y)| {
        y.iter_mut().zip(accumulated).for_each(|(y, accumulated)| *y = E::of(accumulated / state[1]));
    });
}
