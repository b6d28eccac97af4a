//! The sum over all runs of linear attention, in their order.

use crate::cpu::call::{Call, at, at4};
use crate::cpu::parallel::*;
use crate::kernels::linear_attention::FinishParams;

pub(super) fn run(mut call: Call<'_>) {
    let p: FinishParams = call.params();
    let [sums, table] = call.take();
    let length = at4(p.elements);
    let sums = &sums.read::<f32>()[..at(p.runs) * length];
    table.write::<f32>()[..length].par_iter_mut().enumerate().for_each(|(index, element)| {
        *element = sums.iter().skip(index).step_by(length).sum();
    });
}
