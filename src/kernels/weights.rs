//! How weights lie in GPU memory, and the packing from diffusers' layout. Done once, when a model is loaded.

use serde::Serialize;

use crate::tensor::{Bytes, Storage};

/// The layout that kernels read a weight in. Channels are padded with zeros to multiples of 4.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Layout {
    /// `[c_out, c_in, filter, filter]` as stored `[filter, filter, c_in, c_out / 4]`. A linear layer is a filter of 1.
    Filter {
        /// Side of the filter, pixels.
        filter: u32,
        /// Input channels, not padded.
        c_in: u32,
        /// Output channels, not padded.
        c_out: u32,
    },
    /// `[c]` as f32.
    Vector {
        /// Elements, not padded.
        channels: u32,
    },
}

impl Layout {
    /// The shape in the file, in torch's axis order.
    pub fn file_shape(self) -> Vec<u64> {
        match self {
            Self::Filter { filter, c_in, c_out } => [c_out, c_in, filter, filter].map(u64::from).to_vec(),
            Self::Vector { channels } => vec![u64::from(channels)],
        }
    }

    /// Bytes on the GPU.
    pub fn bytes(self, storage: Storage) -> Bytes {
        match self {
            Self::Filter { filter, c_in, c_out } => {
                let rows = u64::from(filter * filter) * u64::from(c_in.next_multiple_of(4));
                Bytes(rows * u64::from(c_out.div_ceil(4)) * storage.vec4_bytes())
            }
            Self::Vector { channels } => Bytes(u64::from(channels.next_multiple_of(4)) * 4),
        }
    }
}

/// Packs `values`, as they stand in the file, times `factor`.
///
/// # Panics
/// When `values` has not as many elements as the layout's shape: the reader has checked it.
pub fn pack(values: &[f32], layout: Layout, storage: Storage, factor: f32) -> Vec<u8> {
    match layout {
        Layout::Vector { channels } => {
            assert_eq!(values.len(), channels as usize, "a vector of another length");
            let padded = values.iter().map(|value| value * factor).chain(std::iter::repeat(0.0));
            padded.take(channels.next_multiple_of(4) as usize).flat_map(f32::to_le_bytes).collect()
        }
        Layout::Filter { filter, c_in, c_out } => {
            let (taps, c_in, c_out) = ((filter * filter) as usize, c_in as usize, c_out as usize);
            assert_eq!(values.len(), taps * c_in * c_out, "a filter of another size");
            let (rows, columns) = (c_in.next_multiple_of(4), c_out.next_multiple_of(4));
            let mut packed = vec![0.0_f32; taps * rows * columns];
            for out in 0..c_out {
                for input in 0..c_in {
                    for tap in 0..taps {
                        packed[(tap * rows + input) * columns + out] =
                            values[(out * c_in + input) * taps + tap] * factor;
                    }
                }
            }
            store(&packed, storage)
        }
    }
}

/// The bytes of `values` in `storage`.
pub fn store(values: &[f32], storage: Storage) -> Vec<u8> {
    match storage {
        Storage::F32 => bytemuck::cast_slice(values).to_vec(),
        Storage::F16 | Storage::PackedF16 => {
            use half::slice::HalfFloatSliceExt as _;
            let mut halves = vec![half::f16::ZERO; values.len()];
            halves.convert_from_f32_slice(values);
            bytemuck::cast_slice(&halves).to_vec()
        }
    }
}
