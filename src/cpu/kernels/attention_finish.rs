//! y = accumulated / sum of the streaming softmax, row by row.

use crate::cpu::call::{Call, at, at4};
use crate::cpu::parallel::*;
use crate::kernels::attention::FinishParams;

pub(super) fn run(mut call: Call<'_>) {
    let p: FinishParams = call.params();
    let [accumulated, state, y] = call.take();
    let channels = at4(p.channels4);
    let rows = accumulated.read().par_chunks(channels).zip(state.read().par_chunks(2));
    let y = y.write()[at4(p.y_offset)..].par_chunks_mut(channels);
    rows.zip(y).take(at(p.queries)).for_each(|((accumulated, state), y)| {
        y.iter_mut().zip(accumulated).for_each(|(y, accumulated)| *y = accumulated / state[1]);
    });
}
