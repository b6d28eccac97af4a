//! Winograd F(4x4, 3x3) around a batched product: filter, input and output transforms.
//! Shaders: `winograd_{weights,in,out}.wgsl`; the 36 products are a [`crate::kernels::matmul`].

use crate::kernels::activation;
use crate::kernels::choice::Transforms;
use crate::kernels::{Access, Interface, Launch, Value, Variant, WORKGROUP, groups, params};
use crate::model::graph::{Activation, Doubling};
use crate::tensor::Storage;

/// Output pixels along one side of a tile.
pub const TILE: u32 = 4;
/// Products per tile: 6x6 points.
pub const POINTS: u32 = 36;

params! {
    /// Numbers of `winograd_weights`.
    WeightsParams, WEIGHTS_PARAMS {
        /// Input channels, padded to a multiple of 4.
        c_in: u32,
        /// Output channels / 4.
        c_out4: u32,
        /// First vec4 column of w that u covers.
        column0: u32,
        /// vec4 columns of one block of u.
        tile_n: u32,
        /// Column blocks of u.
        blocks: u32,
        /// Rows of u: input channels of all taps in time.
        k: u32,
        /// First row that this launch writes.
        k0: u32,
        /// First element of w.
        w_offset: u32,
    }
}

/// `winograd_weights`.
pub const WEIGHTS: Interface = Interface {
    file: "winograd_weights",
    bindings: &[("w", Access::Read), ("u", Access::ReadWrite)],
    params: WEIGHTS_PARAMS,
};

/// `winograd_weights_columns`.
pub const WEIGHTS_COLUMNS: Interface = Interface { file: "winograd_weights_columns", ..WEIGHTS };

/// The part of its value at which transformed input that is kept as `transformed` is, and with it
/// the products: a power of two, by which halves hold what comes of any input that they hold.
/// [`output`] is to undo it.
pub fn factor(transformed: Storage) -> f32 {
    if transformed == Storage::F32 { 1.0 } else { 1.0 / 32.0 }
}

/// How both sides of a transform are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Storages {
    /// The model's side: filters, input or output.
    pub stored: Storage,
    /// The products' side: transformed filters, transformed input or the products themselves.
    /// [`Storage::F32`] or [`Storage::F16`].
    pub transformed: Storage,
}

impl Storages {
    /// Those of a model in `storage`, and of what it transforms.
    pub fn of(storage: Storage) -> Self {
        Self { stored: storage, transformed: storage.transformed() }
    }

    /// For kernels whose elements are four channels.
    fn fours(self) -> [(&'static str, Value); 2] {
        let Self { stored, transformed } = self;
        [("Stored", Value::Type(stored.wgsl_type())), ("Transformed", Value::Type(transformed.wgsl_type()))]
    }

    /// For kernels whose elements are two channels.
    fn pairs(self) -> [(&'static str, Value); 2] {
        let Self { stored, transformed } = self;
        [("Pair", Value::Type(stored.wgsl_pair())), ("Transformed", Value::Type(transformed.wgsl_pair()))]
    }
}

/// Launches `winograd_weights` for one tap in time.
pub fn weights(storages: Storages, params: WeightsParams) -> Launch {
    let columns = u64::from(params.blocks) * u64::from(params.tile_n);
    Launch {
        variant: Variant { file: "winograd_weights", values: storages.fours().to_vec() },
        workgroups: [groups(columns * u64::from(params.c_in)), 1, 1],
        params: bytemuck::bytes_of(&params).to_vec(),
        macs: 0,
    }
}

/// Launches `winograd_weights_columns` for one tap in time: halves to halves, for `matmul_matrix`.
/// All columns of a block are there, and multiples of four rows.
pub fn weights_columns(params: WeightsParams) -> Launch {
    let filters = u64::from(params.blocks) * u64::from(params.tile_n) * u64::from(params.c_in);
    Launch {
        variant: Variant {
            file: WEIGHTS_COLUMNS.file,
            values: vec![("Stored", Value::Type("f16")), ("Transformed", Value::Type(Storage::F16.wgsl_type()))],
        },
        workgroups: [groups(filters), 1, 1],
        params: bytemuck::bytes_of(&params).to_vec(),
        macs: 0,
    }
}

params! {
    /// Numbers of `winograd_in`.
    InParams, IN_PARAMS {
        /// Tiles of this band.
        tiles: u32,
        /// Tiles in a row of this band.
        tiles_x: u32,
        /// First tile column.
        tile_x0: u32,
        /// First image row of this band.
        y0: u32,
        /// Image width after doubling, pixels.
        width: u32,
        /// Image height after doubling, pixels.
        height: u32,
        /// Width of x, pixels.
        x_width: u32,
        /// Image row before doubling that x starts with.
        x_row0: i32,
        /// Channels of all frames / 4.
        channels4: u32,
        /// Channels of one frame / 4.
        frame4: u32,
        /// Channels of v / 4.
        v_channels4: u32,
        /// First of them that this launch writes, / 4.
        v_channel0: u32,
        /// Tiles that there is room for in v.
        v_tiles: u32,
    }
}

/// `winograd_in`.
pub const IN: Interface = Interface {
    file: "winograd_in",
    bindings: &[("x", Access::Read), ("norm", Access::Read), ("v", Access::ReadWrite)],
    params: IN_PARAMS,
};

/// What happens to the input as it is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Prologue {
    /// Scale and shift by the group norm.
    pub normalize: bool,
    /// Then this.
    pub activation: Option<Activation>,
    /// Double the size.
    pub doubling: Option<Doubling>,
}

/// `winograd_in_pairs`.
pub const IN_PAIRS: Interface = Interface { file: "winograd_in_pairs", ..IN };

/// Tiles of one workgroup of `winograd_in`; the rest of the workgroup goes over channels.
const IN_TILES: u32 = 16;
/// Pairs of channels of one workgroup of `winograd_in_pairs`; the rest of the workgroup goes over
/// tiles.
pub const PAIRS_IN: u32 = 16;
/// The same of `winograd_out_pairs`, whose workgroups have a run of tiles to go over: of fewer
/// pairs there are enough workgroups.
pub const PAIRS_OUT: u32 = 8;

/// Elements from one tile to the next, and from four channels to the next four, of v with room for
/// `tiles` tiles and `channels4` groups of channels.
pub fn strides(transforms: Transforms, tiles: u32, channels4: u32) -> (u32, u32) {
    match transforms {
        Transforms::Runs => (1, tiles),
        Transforms::Pairs => (channels4, 1),
    }
}

/// Launches `winograd_in` or `winograd_in_pairs`.
pub fn input(transforms: Transforms, storages: Storages, prologue: Prologue, params: InParams) -> Launch {
    let mut values = vec![
        ("NORMALIZE", Value::Bool(prologue.normalize)),
        activation::value(prologue.activation),
        ("SHIFT", Value::U32(u32::from(prologue.doubling.is_some()))),
        ("SHUFFLE", Value::Bool(prologue.doubling == Some(Doubling::Shuffle))),
        ("HALVES", Value::Bool(storages.transformed != Storage::F32)),
    ];
    let (file, tiles, channels) = match transforms {
        Transforms::Runs => {
            values.push(("WORKGROUP_TILES", Value::U32(IN_TILES)));
            values.extend(storages.fours());
            (IN.file, IN_TILES, params.channels4.div_ceil(WORKGROUP / IN_TILES))
        }
        Transforms::Pairs => {
            values.extend(storages.pairs());
            (IN_PAIRS.file, WORKGROUP / PAIRS_IN, (params.channels4 * 2).div_ceil(PAIRS_IN))
        }
    };
    Launch {
        variant: Variant { file, values },
        workgroups: [params.tiles.div_ceil(tiles), channels, 1],
        params: bytemuck::bytes_of(&params).to_vec(),
        macs: 0,
    }
}

params! {
    /// Numbers of `winograd_out`.
    OutParams, OUT_PARAMS {
        /// Tiles of this band.
        tiles: u32,
        /// Tiles in a row of this band.
        tiles_x: u32,
        /// First tile column.
        tile_x0: u32,
        /// Tiles of one run.
        run: u32,
        /// Runs in a row of tiles.
        runs_x: u32,
        /// Runs of this band.
        runs: u32,
        /// First image row of this band.
        y0: u32,
        /// Image width, pixels.
        width: u32,
        /// First image row after this band's chunk.
        height: u32,
        /// Image row that y starts with.
        y_row0: i32,
        /// Channels of all frames / 4.
        channels4: u32,
        /// Channels of one frame / 4.
        bias4: u32,
        /// First run of this band in moments.
        moments_offset: u32,
        /// Factor of the product.
        scale: f32,
        /// Tiles that there is room for in m.
        m_tiles: u32,
    }
}

/// `winograd_out`.
pub const OUT: Interface = Interface {
    file: "winograd_out",
    bindings: &[("m", Access::Read), ("bias", Access::Read), ("y", Access::ReadWrite), ("moments", Access::ReadWrite)],
    params: OUT_PARAMS,
};

/// What happens to the output as it is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Epilogue {
    /// Add what y holds.
    pub accumulate: bool,
    /// Then `max(y, 0)`.
    pub relu: bool,
    /// Write moments for the next group norm.
    pub moments: bool,
}

/// `winograd_out_pairs`.
pub const OUT_PAIRS: Interface = Interface { file: "winograd_out_pairs", ..OUT };

/// Launches `winograd_out` or `winograd_out_pairs`.
pub fn output(transforms: Transforms, storages: Storages, epilogue: Epilogue, params: OutParams) -> Launch {
    let mut values = vec![
        ("ACCUMULATE", Value::Bool(epilogue.accumulate)),
        ("RELU", Value::Bool(epilogue.relu)),
        ("MOMENTS", Value::Bool(epilogue.moments)),
    ];
    let (file, workgroups) = match transforms {
        Transforms::Runs => {
            values.extend(storages.fours());
            (OUT.file, [groups(u64::from(params.runs) * u64::from(params.channels4)), 1, 1])
        }
        Transforms::Pairs => {
            values.extend(storages.pairs());
            (OUT_PAIRS.file, [params.runs, (params.channels4 * 2).div_ceil(PAIRS_OUT), 1])
        }
    };
    Launch { variant: Variant { file, values }, workgroups, params: bytemuck::bytes_of(&params).to_vec(), macs: 0 }
}
