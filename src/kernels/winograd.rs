//! Winograd F(4x4, 3x3): transforms of filters, input and output. Shaders:
//! `winograd_{weights,in,out}.wgsl` and their variants. The 36 products between the transforms are
//! a [`crate::kernels::matmul`].

use crate::kernels::choice::Transforms;
use crate::kernels::{Interface, Launch, Value, WORKGROUP, kernel, line};
use crate::kernels::{activation, border};
use crate::model::graph::{Activation, Border, Doubling};
use crate::tensor::Storage;

/// Output pixels along one side of a tile.
pub const TILE: u32 = 4;
/// Products per tile: 6x6 points.
pub const POINTS: u32 = 36;

kernel! {
    /// Interface of `winograd_weights`.
    WEIGHTS = "winograd_weights"(w: Read, u: ReadWrite);
    WeightsParams {
        c_in: u32, c_out4: u32, column0: u32, tile_n: u32, blocks: u32, k: u32, k0: u32,
        w_offset: u32,
    }
}

/// Returns the factor at which transformed input in `transformed` is stored, and with it the
/// products. With this power of two, halves can hold the transform of any input that they can hold.
/// The parameters of [`output`] must undo it.
pub fn factor(transformed: Storage) -> f32 {
    if transformed == Storage::F32 { 1.0 } else { 1.0 / 32.0 }
}

/// The storage on both sides of a transform.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Storages {
    /// Storage of the model's side: filters, input or output.
    pub stored: Storage,
    /// Storage of the products' side: transformed filters, transformed input or the products
    /// themselves. [`Storage::F32`] or [`Storage::F16`].
    pub transformed: Storage,
}

impl Storages {
    /// Returns the storages for a model in `storage`.
    pub fn of(storage: Storage) -> Self {
        Self { stored: storage, transformed: storage.transformed() }
    }

    /// Returns the aliases for kernels whose elements are four channels.
    fn fours(self) -> [(&'static str, Value); 2] {
        let Self { stored, transformed } = self;
        [("Stored", Value::Type(stored.wgsl_type())), ("Transformed", Value::Type(transformed.wgsl_type()))]
    }

    /// Returns the aliases for kernels whose elements are two channels.
    fn pairs(self) -> [(&'static str, Value); 2] {
        let Self { stored, transformed } = self;
        [("Pair", Value::Type(stored.wgsl_pair())), ("Transformed", Value::Type(transformed.wgsl_pair()))]
    }
}

/// Launches `winograd_weights` for one tap in time.
pub fn weights(storages: Storages, params: WeightsParams) -> Launch {
    WEIGHTS.launch(storages.fours().to_vec(), &params, line(&[params.blocks, params.tile_n, params.c_in]))
}

kernel! {
    /// Interface of `winograd_in`.
    IN = "winograd_in"(x: Read, norm: Read, v: ReadWrite);
    InParams {
        tiles: u32, tiles_x: u32, tile_x0: u32, y0: u32, width: u32, height: u32, x_width: u32,
        x_row0: i32, channels4: u32, frame4: u32, v_channels4: u32, v_channel0: u32,
    }
}

/// Operations on the input as it is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct WinogradPrologue {
    /// True to scale and shift by the group norm.
    pub normalize: bool,
    /// Activation, applied after the norm.
    pub activation: Option<Activation>,
    /// Doubling of the size.
    pub doubling: Option<Doubling>,
    /// Border of the image, of a filter that keeps the size.
    pub border: Border,
}

/// Interface of `winograd_in_pairs`.
pub const IN_PAIRS: Interface = kernel!("winograd_in_pairs" like IN);

/// Tiles of one workgroup of `winograd_in`. Its other axis goes over channels.
const IN_TILES: u32 = 16;
/// Pairs of channels of one workgroup of `winograd_in_pairs`. Its other axis goes over tiles.
pub const PAIRS_IN: u32 = 16;
/// Pairs of channels of one workgroup of `winograd_out_pairs`. Its workgroups loop over a run of
/// tiles, so there must be more of them than for the input: a workgroup has fewer pairs.
pub const PAIRS_OUT: u32 = 8;

/// Returns the elements of v from one tile to the next, and from four channels to the next four. v
/// has room for `tiles` tiles and `channels4` groups of channels.
pub fn strides(transforms: Transforms, tiles: u32, channels4: u32) -> (u32, u32) {
    match transforms {
        Transforms::Runs => (1, tiles),
        Transforms::Pairs => (channels4, 1),
    }
}

/// Launches `winograd_in` or `winograd_in_pairs`.
pub fn input(transforms: Transforms, storages: Storages, prologue: WinogradPrologue, params: InParams) -> Launch {
    let mut values = vec![
        ("NORMALIZE", Value::Bool(prologue.normalize)),
        activation::value(prologue.activation),
        ("SHIFT", Value::U32(u32::from(prologue.doubling.is_some()))),
        ("SHUFFLE", Value::Bool(prologue.doubling == Some(Doubling::Shuffle))),
        ("HALVES", Value::Bool(storages.transformed != Storage::F32)),
        border::value(prologue.border),
    ];
    let (interface, workgroups) = match transforms {
        Transforms::Runs => {
            values.push(("WORKGROUP_TILES", Value::U32(IN_TILES)));
            values.extend(storages.fours());
            let channels = params.channels4.div_ceil(WORKGROUP / IN_TILES);
            (IN, [params.tiles.div_ceil(IN_TILES), channels, 1])
        }
        Transforms::Pairs => {
            values.extend(storages.pairs());
            let channels = (params.channels4 * 2).div_ceil(PAIRS_IN);
            (IN_PAIRS, [channels, params.tiles.div_ceil(WORKGROUP / PAIRS_IN), 1])
        }
    };
    interface.launch(values, &params, workgroups)
}

kernel! {
    /// Interface of `winograd_out`.
    OUT = "winograd_out"(m: Read, bias: Read, y: ReadWrite, moments: ReadWrite);
    OutParams {
        tiles: u32, tiles_x: u32, tile_x0: u32, run: u32, runs_x: u32, runs: u32, y0: u32,
        width: u32, height: u32, y_row0: i32, channels4: u32, bias4: u32, moments_offset: u32,
        scale: f32,
    }
}

/// Operations on the output as it is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct WinogradEpilogue {
    /// True to add the old value of y.
    pub accumulate: bool,
    /// True to apply `max(y, 0)` after that.
    pub relu: bool,
    /// True to write moments for the next group norm.
    pub moments: bool,
}

/// Interface of `winograd_out_pairs`.
pub const OUT_PAIRS: Interface = kernel!("winograd_out_pairs" like OUT);

/// Launches `winograd_out` or `winograd_out_pairs`.
pub fn output(transforms: Transforms, storages: Storages, epilogue: WinogradEpilogue, params: OutParams) -> Launch {
    let mut values = vec![
        ("ACCUMULATE", Value::Bool(epilogue.accumulate)),
        ("RELU", Value::Bool(epilogue.relu)),
        ("MOMENTS", Value::Bool(epilogue.moments)),
    ];
    let (interface, workgroups) = match transforms {
        Transforms::Runs => {
            values.extend(storages.fours());
            (OUT, line(&[params.runs, params.channels4]))
        }
        Transforms::Pairs => {
            values.extend(storages.pairs());
            (OUT_PAIRS, [(params.channels4 * 2).div_ceil(PAIRS_OUT), params.runs, 1])
        }
    };
    interface.launch(values, &params, workgroups)
}
