//! Means or copies of channels, at another size.

use rayon::prelude::*;

use crate::cpu::call::{Call, at, at4};
use crate::kernels::regroup::RegroupParams;

/// A number of x that a channel of y takes: row and column from the pixel's own, and channel.
struct Source {
    row: usize,
    column: usize,
    channel: usize,
}

pub(super) fn run(mut call: Call<'_>) {
    let p: RegroupParams = call.params();
    let by_place = call.variant.flag("BY_PLACE");
    let how = How { relu: call.variant.flag("RELU"), sum: call.variant.flag("SUM") };
    let [x, y] = call.take();
    let x = &x.read()[at4(p.x_offset)..];
    let (side, places, width) = (at(p.side), at(p.places), at(p.width));
    let rows = y.write()[at4(p.y_offset)..].par_chunks_mut(at4(p.y_row)).take(at(p.pixels) / width);
    let y = rows.map(|row| &mut row[..width * at4(p.channels4)]);
    if call.variant.flag("COPIES") {
        // Factors of a channel and a place in the number of y that they have.
        let (of_channel, of_place) = if by_place { (1, at(p.channels)) } else { (places, 1) };
        y.enumerate().for_each(|(row, y)| {
            for (column, y) in y.chunks_exact_mut(at4(p.channels4)).enumerate() {
                let x = &x[(row / side * at(p.x_width) + column / side) * at4(p.x_channels4)..];
                let place = places - side * side + row % side * side + column % side;
                fill(p, how, y, |channel| x[(channel * of_channel + place * of_place) / at(p.count)]);
            }
        });
        return;
    }
    let sources: Vec<Vec<Source>> = (0..at(p.channels)).map(|channel| sources(p, by_place, channel)).collect();
    #[expect(clippy::cast_precision_loss, reason = "few numbers")]
    let count = p.count as f32;
    y.enumerate().for_each(|(row, y)| {
        for (column, y) in y.chunks_exact_mut(at4(p.channels4)).enumerate() {
            let number = |source: &Source| {
                let pixel = (row * side + source.row) * at(p.x_width) + column * side + source.column;
                x[pixel * at4(p.x_channels4) + source.channel]
            };
            fill(p, how, y, |channel| sources[channel].iter().map(number).sum::<f32>() / count);
        }
    });
}

/// Returns the numbers of which `channel` of y is the mean. Places in time before the image's own
/// are left out: they are zero.
fn sources(p: RegroupParams, by_place: bool, channel: usize) -> Vec<Source> {
    let (side, places, count) = (at(p.side), at(p.places), at(p.count));
    let x_channels = at(p.channels) * count / places;
    let source = |number: usize| {
        let (channel, place) =
            if by_place { (number % x_channels, number / x_channels) } else { (number / places, number % places) };
        let place = (place + side * side).checked_sub(places)?;
        Some(Source { row: place / side, column: place % side, channel })
    };
    (channel * count..(channel + 1) * count).filter_map(source).collect()
}

/// Last steps for a number of y.
#[derive(Clone, Copy)]
struct How {
    relu: bool,
    sum: bool,
}

/// Sets the channels of a pixel of y.
fn fill(p: RegroupParams, how: How, y: &mut [f32], value: impl Fn(usize) -> f32) {
    for (channel, y) in y.iter_mut().enumerate() {
        let value = if channel < at(p.channels) { value(channel) * p.scale } else { 0.0 };
        let value = if how.relu { value.max(0.0) } else { value };
        *y = if how.sum { *y + value } else { value };
    }
}
