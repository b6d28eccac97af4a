//! Shortcuts without weights: means or copies of channels, at another size or number of frames.

use crate::error::Result;
use crate::kernels::regroup::{RegroupParams, Regrouping};
use crate::model::graph::{Border, Regroup, Shape, Window};
use crate::plan::Resource;
use crate::plan::fused::Shortcut;
use crate::plan::node::{Node, Scratch, Shared};
use crate::plan::partition::RowRange;

use super::lowering::Lowering;
use super::past;
use super::sizing::{Reach, Sizing};

/// Returns the node of a shortcut.
///
/// # Errors
/// [`crate::Error::TooLarge`] if four rows of its output exceed a binding.
pub(super) fn node(sizing: &Sizing<'_>, shortcut: &Shortcut) -> Result<Node> {
    let &Shortcut { regroup, input, sum, output, .. } = shortcut;
    let partition = match sum {
        Some(sum) => sizing.partition(sum).clone(),
        None => sizing.cut(output, Some(input), 0)?,
    };
    let side = regroup.side();
    let reach = if regroup.grows() {
        Reach::Grown(side)
    } else {
        Reach::Filter { window: Window { side, stride: side, border: Border::After }, doubled: false }
    };
    let reads = vec![sizing.read(&partition, input, reach)];
    let replaces = sum.map(|sum| sizing.producer(sum));
    let scratch = Scratch::default().with(Shared::Kept, past::kept_bytes(sizing, input, &shortcut.keeps));
    Ok(Node { replaces, scratch, ..sizing.storing(output, partition, reads) })
}

/// Returns the rows of the output that rows of the input belong to.
fn made_of(regroup: Regroup, RowRange { start, end }: RowRange) -> RowRange {
    let side = regroup.side();
    if regroup.grows() {
        RowRange { start: start * side, end: end * side }
    } else {
        // Chunks begin with a multiple of four rows, and last rows that fill no square are dropped.
        RowRange { start: start / side, end: end / side }
    }
}

/// Returns `params` for an input of shape `from` with the channels of row `index` of places only.
/// Two pixels of y are one of x, with the channels of both.
fn to_rows(params: RegroupParams, from: Shape, index: u32) -> RegroupParams {
    RegroupParams {
        pixels: params.pixels / 4,
        width: from.width,
        channels: from.channels,
        channels4: from.channels4(),
        y_offset: params.y_offset + index * params.y_row,
        y_row: params.y_row * 2,
        side: 1,
        places: 1,
        ..params
    }
}

impl Lowering<'_> {
    /// Computes chunk `chunk` of a shortcut, with a launch for each chunk of its input.
    pub(super) fn regroup(&mut self, shortcut: &Shortcut, chunk: usize, measure: bool) {
        let &Shortcut { regroup: kind, input, sum, output, relu, scale, .. } = shortcut;
        let [from, to] = [input, output].map(|tensor| self.fused.shape(tensor));
        let target = self.place(output, chunk);
        let own = self.rows(chunk);
        let source = self.tensor(input).clone();
        for index in 0..source.partition.count() {
            let held = source.partition.chunk(index);
            let rows = made_of(kind, held).intersect(own);
            if rows.start >= rows.end {
                continue;
            }
            let first = if kind.grows() { rows.start / kind.side() } else { rows.start * kind.side() };
            let row = to.width * to.pixel4();
            let mut params = RegroupParams {
                pixels: rows.count() * to.width,
                width: to.width,
                frames: to.frames,
                channels: to.channels,
                channels4: to.channels4(),
                x_width: from.width,
                x_frames: from.frames,
                x_channels4: from.channels4(),
                x_offset: (first - held.start) * from.width * from.pixel4()
                    + kind.read(from.frames).0 * from.channels4(),
                y_offset: (rows.start - own.start) * row,
                y_row: row,
                side: kind.side(),
                column_step: if kind.by_column { kind.side() } else { 1 },
                places: kind.places(),
                missing: kind.missing,
                repeats_first: kind.repeats_first.into(),
                tiled: kind.tiled.into(),
                count: kind.count(from.channels, to.channels),
                scale,
            };
            if let Some(index) = kind.row {
                params = to_rows(params, from, index);
            }
            let regrouping = Regrouping {
                input: source.storage,
                output: self.output_of_stage().storage,
                copies: kind.copies(from.channels, to.channels),
                by_place: kind.by_place && kind.row.is_none(),
                relu,
                sum: sum.is_some(),
                params,
            };
            self.launch(regrouping.launch(), &[Resource::Buffer(source.chunk(index)), Resource::Buffer(target)]);
        }
        if measure {
            self.measure(output, chunk);
        }
    }
}
