//! Means or copies of channels, at another size or number of frames.

use crate::cpu::call::{Call, at, at4};
use crate::cpu::parallel::*;
use crate::cpu::stored::Stored;
use crate::kernels::regroup::RegroupParams;

/// A number of x that a channel of y takes: frame, row and column from its own, and channel.
struct Source {
    frame: usize,
    row: usize,
    column: usize,
    channel: usize,
}

/// Places of a channel of the larger tensor.
#[derive(Clone, Copy)]
struct Places {
    side: usize,
    column_step: usize,
    frames: usize,
    missing: usize,
}

impl Places {
    fn of(p: RegroupParams) -> Self {
        let side = at(p.side);
        let frames = at(p.places) / (side * side);
        Self { side, column_step: at(p.column_step), frames, missing: at(p.missing) }
    }

    /// Returns the place of a pixel in its square.
    fn in_square(self, row: usize, column: usize) -> usize {
        row % self.side * (self.side / self.column_step) + column % self.side * self.column_step
    }
}

pub(super) fn run<E: Stored, O: Stored>(mut call: Call<'_>) {
    let p: RegroupParams = call.params();
    let by_place = call.variant.flag("BY_PLACE");
    let how = How { relu: call.variant.flag("RELU"), sum: call.variant.flag("SUM") };
    let [x, y] = call.take();
    let x = &x.read::<E>()[at4(p.x_offset)..];
    let (places, width) = (Places::of(p), at(p.width));
    let Places { side, frames, missing, .. } = places;
    let rows = y.write::<O>()[at4(p.y_offset)..].par_chunks_mut(at4(p.y_row)).take(at(p.pixels) / width);
    let y = rows.map(|row| &mut row[..width * at(p.frames) * at4(p.channels4)]);
    let from = |row: usize, column: usize, frame: usize| {
        ((row * at(p.x_width) + column) * at(p.x_frames) + frame) * at4(p.x_channels4)
    };
    if call.variant.flag("COPIES") {
        // Factors of a channel and a place in the number of y that they have.
        let (of_channel, of_place) = if by_place { (1, at(p.channels)) } else { (at(p.places), 1) };
        let x_channels = at(p.channels) * at(p.places) / at(p.count);
        y.enumerate().for_each(|(row, y)| {
            for (index, y) in y.chunks_exact_mut(at4(p.channels4)).enumerate() {
                let (column, frame) = (index / at(p.frames), index % at(p.frames) + missing);
                let x = &x[from(row / side, column / side, frame / frames)..];
                let place = frame % frames * side * side + places.in_square(row, column);
                let source = |number: usize| if p.tiled > 0 { number % x_channels } else { number / at(p.count) };
                fill(p, how, y, |channel| x[source(channel * of_channel + place * of_place)].get());
            }
        });
        return;
    }
    let sources: Vec<Vec<Source>> = (0..at(p.channels)).map(|channel| sources(p, by_place, channel)).collect();
    #[expect(clippy::cast_precision_loss, reason = "few numbers")]
    let count = p.count as f32;
    y.enumerate().for_each(|(row, y)| {
        for (index, y) in y.chunks_exact_mut(at4(p.channels4)).enumerate() {
            let (column, frame) = (index / at(p.frames), index % at(p.frames) * frames);
            let number = |source: &Source| {
                // A frame that does not exist is zero, or the first.
                let frame = (frame + source.frame).checked_sub(missing).or((p.repeats_first > 0).then_some(0))?;
                Some(x[from(row * side + source.row, column * side + source.column, frame) + source.channel].get())
            };
            fill(p, how, y, |channel| sources[channel].iter().filter_map(number).sum::<f32>() / count);
        }
    });
}

/// Returns the numbers of which `channel` of y is the mean.
fn sources(p: RegroupParams, by_place: bool, channel: usize) -> Vec<Source> {
    let Places { side, column_step, .. } = Places::of(p);
    let (places, count) = (at(p.places), at(p.count));
    let x_channels = at(p.channels) * count / places;
    let source = |number: usize| {
        let (channel, place) =
            if by_place { (number % x_channels, number / x_channels) } else { (number / places, number % places) };
        let (row, column) = (place / (side / column_step) % side, place / column_step % side);
        Source { frame: place / (side * side), row, column, channel }
    };
    (channel * count..(channel + 1) * count).map(source).collect()
}

/// Last steps for a number of y.
#[derive(Clone, Copy)]
struct How {
    relu: bool,
    sum: bool,
}

/// Sets the channels of a pixel of y.
fn fill<O: Stored>(p: RegroupParams, how: How, y: &mut [O], value: impl Fn(usize) -> f32) {
    for (channel, y) in y.iter_mut().enumerate() {
        let value = if channel < at(p.channels) { value(channel) * p.scale } else { 0.0 };
        // A value that is not finite stays: an overflow must not pass for a picture.
        let value = if how.relu && value.is_finite() { value.max(0.0) } else { value };
        *y = O::of(if how.sum { y.get() + value } else { value });
    }
}
