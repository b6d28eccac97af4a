//! Layouts of weights in GPU memory, and the packing from diffusers' layout. Packing happens once,
//! when a model is loaded.

use std::ops::Range;

use serde::Serialize;

use super::spread::spread;
use crate::model::graph::WeightSlice;
use crate::tensor::{Bytes, Storage};

/// The layout in which kernels read a weight. Channels are padded with zeros to multiples of 4.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum WeightLayout {
    /// A filter `[c_out, c_in, times, filter, filter]`, stored as
    /// `[times, filter, filter, c_in, c_out / 4]`. A linear layer is a filter of 1.
    Filter {
        /// Taps in time; 1 if the slice is one tap or a sum of taps.
        times: u32,
        /// Side of the filter, pixels.
        filter: u32,
        /// Input channels, not padded.
        c_in: u32,
        /// Output channels of the whole filter, not padded.
        c_out: u32,
        /// First output channel that is stored, and the one after the last.
        columns: (u32, u32),
    },
    /// A filter of each channel by itself, `[c, 1, filter, filter]`, stored as
    /// `[filter, filter, c / 4]`, as f32.
    Depthwise {
        /// Side of the filter, pixels.
        filter: u32,
        /// Channels, not padded.
        channels: u32,
    },
    /// A vector `[c]`, stored as f32.
    Vector {
        /// Number of elements, not padded.
        channels: u32,
    },
}

/// Largest filter that is stored as one weight, bytes: WebGPU's default limit of a binding.
const MOST_FILTER_BYTES: u64 = 128 << 20;

impl WeightLayout {
    /// Returns the layout of a whole filter.
    pub fn filter(times: u32, filter: u32, c_in: u32, c_out: u32) -> Self {
        Self::Filter { times, filter, c_in, c_out, columns: (0, c_out) }
    }

    /// Returns the parts of a filter, each with some of the output channels, that are weights of
    /// their own. One part, if the filter is not larger than a binding.
    pub fn parts(self, storage: Storage) -> Vec<Self> {
        // As many channels as any block of columns that products need together.
        const STEP: u32 = 64;
        let Self::Filter { times, filter, c_in, c_out, .. } = self else { return vec![self] };
        let most = MOST_FILTER_BYTES / Self::filter(times, filter, c_in, STEP).bytes(storage).0.max(1);
        let most = u32::try_from(most).unwrap_or(u32::MAX).max(1).saturating_mul(STEP);
        let part = |first: u32| {
            let columns = (first, c_out.min(first.saturating_add(most)));
            Self::Filter { times, filter, c_in, c_out, columns }
        };
        (0..c_out).step_by(most as usize).map(part).collect()
    }

    /// Returns the elements of the file's tensor that `slice` covers. Returns `None` if the
    /// weight comes from no file.
    fn file_elements(self, slice: WeightSlice) -> Option<u64> {
        let (rows, rest) = match self {
            Self::Filter { times, filter, c_in, c_out, .. } => {
                (c_out, u64::from(c_in) * u64::from(times * filter * filter))
            }
            Self::Depthwise { filter, channels } => (channels, u64::from(filter * filter)),
            Self::Vector { channels } => (channels, 1),
        };
        match slice {
            WeightSlice::All | WeightSlice::Frames { .. } | WeightSlice::InputTaps { .. } => {
                Some(u64::from(rows) * rest)
            }
            WeightSlice::Tap { taps, .. } | WeightSlice::SumOfTaps { taps } => {
                Some(u64::from(rows) * rest * u64::from(taps))
            }
            WeightSlice::Rows { of, summed, .. } => Some(u64::from(of) * rest * u64::from(summed)),
            WeightSlice::Filled { block } => Some(u64::from(rows / block.next_multiple_of(4).max(1) * block) * rest),
            WeightSlice::Inputs { of, .. } => Some(u64::from(rows) * rest * u64::from(of)),
            WeightSlice::Zeros | WeightSlice::Ones | WeightSlice::Transform => None,
        }
    }

    /// Returns the bytes on the GPU.
    pub fn bytes(self, storage: Storage) -> Bytes {
        match self {
            Self::Filter { times, filter, c_in, columns: (first, end), .. } => {
                let rows = u64::from(times * filter * filter) * u64::from(c_in.next_multiple_of(4));
                Bytes(rows * u64::from((end - first).div_ceil(4)) * storage.vec4_bytes())
            }
            Self::Depthwise { filter, channels } => {
                Bytes(u64::from(filter * filter) * u64::from(channels.next_multiple_of(4)) * 4)
            }
            Self::Vector { channels } => Bytes(u64::from(channels.next_multiple_of(4)) * 4),
        }
    }
}

/// Returns the row of output channel `out` in the file's tensor. `None` for a channel of zeros.
fn row(slice: WeightSlice, out: usize) -> Option<usize> {
    let row = match slice {
        WeightSlice::Zeros => return None,
        WeightSlice::Filled { block } => {
            let (block, filled) = (block as usize, block.next_multiple_of(4) as usize);
            if out % filled >= block {
                return None;
            }
            out / filled * block + out % filled
        }
        WeightSlice::Rows { start, block, step, .. } => {
            let [start, block, step] = [start, block, step].map(|number| number as usize);
            start + out / block * step + out % block
        }
        WeightSlice::Frames { frames, parts, block } => {
            let [frames, parts, block] = [frames, parts, block].map(|number| number as usize);
            let (frame, part) = (out / block / parts, out / block % parts);
            (part * frames + frame) * block + out % block
        }
        WeightSlice::All
        | WeightSlice::Tap { .. }
        | WeightSlice::SumOfTaps { .. }
        | WeightSlice::Inputs { .. }
        | WeightSlice::InputTaps { .. }
        | WeightSlice::Ones
        | WeightSlice::Transform => out,
    };
    Some(row)
}

/// Position of a slice's values in the file's tensor.
#[derive(Debug, Clone, Copy)]
struct Taken {
    /// Distance from the first value of a row to the first that is taken.
    first: usize,
    /// Number of values that are added up.
    count: usize,
    /// Distance between two values that are added up.
    step: usize,
    /// Distance between two rows.
    row: usize,
    /// Distance between two input channels.
    input: usize,
    /// Distance between two taps in time.
    time: usize,
    /// True if the last tap in time comes first.
    latest_first: bool,
}

impl Taken {
    /// Returns the place of `slice` of a filter with `times` taps in time of `area` values, for
    /// `c_in` input channels.
    fn new(slice: WeightSlice, times: usize, area: usize, c_in: usize) -> Self {
        let whole = Self {
            first: 0,
            count: 1,
            step: 0,
            row: c_in * times * area,
            input: times * area,
            time: area,
            latest_first: false,
        };
        match slice {
            WeightSlice::Tap { taps, index } => {
                let taps = taps as usize;
                Self { first: index as usize * area, row: c_in * taps * area, input: taps * area, ..whole }
            }
            WeightSlice::SumOfTaps { taps } | WeightSlice::Rows { summed: taps @ 2.., .. } => {
                let taps = taps as usize;
                Self { count: taps, step: area, row: c_in * taps * area, input: taps * area, ..whole }
            }
            WeightSlice::Inputs { start, count, of } => {
                let first = start as usize * whole.row;
                Self { first, count: count as usize, step: whole.row, row: of as usize * whole.row, ..whole }
            }
            WeightSlice::InputTaps { latest_first, .. } => {
                Self { input: area, time: c_in * area, latest_first, ..whole }
            }
            WeightSlice::All
            | WeightSlice::Rows { .. }
            | WeightSlice::Frames { .. }
            | WeightSlice::Filled { .. }
            | WeightSlice::Zeros
            | WeightSlice::Ones
            | WeightSlice::Transform => whole,
        }
    }
}

/// Number of input channels that are packed together. Their taps are a few cache lines of the file,
/// and their place stays in cache until all output channels are in it.
const INPUTS: usize = 8;

/// Values for each thread that make its start worth while.
const ALONE: usize = 1 << 16;

/// Packs `slice` of `values`, times `factor`. `values` are in the order of the file. A slice that
/// comes from no file reads no `values`, except [`WeightSlice::Transform`], whose values the caller
/// has made.
///
/// # Panics
/// Panics if `values` has another number of elements than the file's tensor must have. The reader
/// has checked that number.
pub fn pack(values: &[f32], layout: WeightLayout, slice: WeightSlice, storage: Storage, factor: f32) -> Vec<u8> {
    let mut packed = Vec::new();
    pack_into(&mut packed, values, layout, slice, storage, factor, 1);
    packed
}

/// Packs as [`pack`] does, on up to `threads` threads, and replaces the content of `packed`. A
/// buffer that is used again saves the page faults of a new one.
pub(crate) fn pack_into(
    packed: &mut Vec<u8>,
    values: &[f32],
    layout: WeightLayout,
    slice: WeightSlice,
    storage: Storage,
    factor: f32,
    threads: usize,
) {
    let wanted = match (slice, layout, layout.file_elements(slice)) {
        (.., Some(elements)) => elements,
        (WeightSlice::Transform, WeightLayout::Vector { channels }, None) => u64::from(channels),
        (.., None) => 0,
    };
    assert_eq!(values.len() as u64, wanted, "a tensor of another size");
    packed.clear();
    match layout {
        WeightLayout::Depthwise { filter, channels } => {
            let (area, columns) = ((filter * filter) as usize, channels.next_multiple_of(4) as usize);
            let value = |at: usize| match at % columns {
                channel if channel < channels as usize => values[channel * area + at / columns] * factor,
                _ => 0.0,
            };
            packed.extend((0..area * columns).map(value).flat_map(f32::to_le_bytes));
        }
        WeightLayout::Vector { channels } => {
            let value = |out: usize| match slice {
                WeightSlice::Ones => 1.0,
                _ => row(slice, out).map_or(0.0, |row| values[row] * factor),
            };
            let padding = (channels..channels.next_multiple_of(4)).map(|_| 0.0);
            packed.extend((0..channels as usize).map(value).chain(padding).flat_map(f32::to_le_bytes));
        }
        WeightLayout::Filter { times, filter, c_in, columns: (first, end), .. } => {
            let (times, area, c_in) = (times as usize, (filter * filter) as usize, c_in as usize);
            let (rows, width) = (c_in.next_multiple_of(4), (end - first).next_multiple_of(4) as usize);
            let taken = Taken::new(slice, times, area, c_in);
            let columns = first as usize..end as usize;
            let source = Source { values, slice, taken, times, area, columns, width, factor };
            let element = element_bytes(storage);
            packed.resize(times * area * rows * width * element, 0);
            // The place of each group of inputs, tap by tap.
            let mut groups: Vec<Vec<&mut [u8]>> = (0..c_in.div_ceil(INPUTS)).map(|_| Vec::new()).collect();
            for tap in packed.chunks_mut((rows * width * element).max(1)) {
                let places = tap.chunks_mut(INPUTS * width * element);
                groups.iter_mut().zip(places).for_each(|(group, place)| group.push(place));
            }
            let threads = threads.min(groups.len()).min(values.len() / ALONE).max(1);
            let scratch = || vec![0.0_f32; times * area * INPUTS * width];
            spread(threads, groups.into_iter().enumerate(), scratch, |block, (group, places)| {
                let inputs = group * INPUTS..c_in.min((group + 1) * INPUTS);
                source.gather(inputs.clone(), block);
                for (place, block) in places.into_iter().zip(block.chunks(INPUTS * width)) {
                    store_into(&block[..inputs.len() * width], storage, place);
                }
            });
        }
    }
}

/// A slice of a filter in the order of the file.
struct Source<'a> {
    values: &'a [f32],
    slice: WeightSlice,
    taken: Taken,
    /// Taps in time.
    times: usize,
    /// Taps of a frame.
    area: usize,
    /// Output channels that are packed.
    columns: Range<usize>,
    /// Their number, padded.
    width: usize,
    factor: f32,
}

impl Source<'_> {
    /// Writes the values of these `inputs` to `block`, `[times, area, INPUTS, width]`.
    fn gather(&self, inputs: Range<usize>, block: &mut [f32]) {
        let Self { values, taken, times, area, .. } = self;
        for (out, channel) in self.columns.clone().enumerate() {
            let Some(row) = row(self.slice, channel) else { continue };
            for (input, time) in inputs.clone().flat_map(|input| (0..*times).map(move |time| (input, time))) {
                let stored = if taken.latest_first { times - 1 - time } else { time };
                let at = row * taken.row + input * taken.input + taken.first + stored * taken.time;
                for place in 0..*area {
                    let sum = (0..taken.count).map(|number| values[at + place + number * taken.step]).sum::<f32>();
                    let tap = time * area + place;
                    block[(tap * INPUTS + input - inputs.start) * self.width + out] = sum * self.factor;
                }
            }
        }
    }
}

/// Returns the bytes of `values` in `storage`.
pub fn store(values: &[f32], storage: Storage) -> Vec<u8> {
    let mut bytes = vec![0; values.len() * element_bytes(storage)];
    store_into(values, storage, &mut bytes);
    bytes
}

/// Writes `values` in `storage` to the first of `bytes`.
fn store_into(values: &[f32], storage: Storage, bytes: &mut [u8]) {
    use half::slice::HalfFloatSliceExt as _;
    let bytes = &mut bytes[..values.len() * element_bytes(storage)];
    if storage == Storage::F32 {
        bytes.copy_from_slice(bytemuck::cast_slice(values));
        return;
    }
    let mut halves = [half::f16::ZERO; 1024];
    for (values, bytes) in values.chunks(halves.len()).zip(bytes.chunks_mut(halves.len() * 2)) {
        let halves = &mut halves[..values.len()];
        halves.convert_from_f32_slice(values);
        bytes.copy_from_slice(bytemuck::cast_slice(halves));
    }
}

/// Returns the bytes of one element in `storage`.
#[expect(clippy::cast_possible_truncation, reason = "16 at most")]
fn element_bytes(storage: Storage) -> usize {
    storage.vec4_bytes() as usize / 4
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_pack_what_one_packs() {
        let (c_in, c_out) = (53, 301);
        let values: Vec<f32> =
            (0..9 * c_in * c_out).map(|index| f32::from(u16::try_from(index % 1021).unwrap())).collect();
        assert!(values.len() > 2 * ALONE);
        for storage in [Storage::F32, Storage::F16] {
            let layout = WeightLayout::filter(1, 3, c_in, c_out);
            let alone = pack(&values, layout, WeightSlice::All, storage, 0.5);
            let mut together = vec![7; 3];
            pack_into(&mut together, &values, layout, WeightSlice::All, storage, 0.5, 3);
            assert_eq!(alone, together, "{storage:?}");
        }
    }
}
