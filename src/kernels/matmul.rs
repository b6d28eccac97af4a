//! Batched matrix product with an epilogue. Shaders: `matmul.wgsl`, `matmul_quad.wgsl`,
//! `matmul_shared.wgsl`, `matmul_matrix.wgsl`.

use crate::kernels::choice::{MatmulTile, Products, SHARED_TILE};
use crate::kernels::{Interface, Launch, Value, WORKGROUP, kernel};
pub use crate::limits::MATRIX_SUBGROUPS;
use crate::limits::PlannedUnits;
use crate::tensor::Storage;

kernel! {
    /// Interface of `matmul`: a register tile for each invocation. Offsets and strides of
    /// [`MatmulParams`] count vec4 elements.
    REGISTER = "matmul"(a: Read, b: Read, bias: Read, row_factors: Read, c: ReadWrite);
    MatmulParams {
        m: u32, m_stored: u32, n4: u32, k4: u32, a_offset: u32, a_row: u32, a_column: u32,
        batch: u32, a_batch: u32, a_frame: u32, b_offset: u32, b_row: u32, b_block: u32,
        b_batch: u32, c_offset: u32, c_row: u32, c_batch: u32, c_frame: u32, scale: f32,
    }
}

impl MatmulParams {
    /// Returns the parameters of one product of `[m, k]` with `[k, n]`, whose rows follow one
    /// another, with the kernel `products`.
    pub fn rows(products: Products, m: u32, n4: u32, k4: u32) -> Self {
        let b_block = products.block_columns4();
        let zeros: Self = bytemuck::Zeroable::zeroed();
        let sizes = Self { m, m_stored: m, n4, k4, batch: 1, ..zeros };
        Self { a_row: k4, a_column: 1, b_row: n4, b_block, c_row: n4, scale: 1.0, ..sizes }
    }

    /// Returns the same product with the rows of all frames as one matrix: the frames of the first
    /// row, then those of the second. They must lie so in c.
    fn with_frames_as_rows(self, frames: u32) -> Self {
        if frames == 1 {
            return self;
        }
        assert_eq!(self.c_row, frames * self.c_frame, "frames are next to each other in c");
        Self { m: self.m * frames, m_stored: self.m_stored * frames, c_row: self.c_frame, c_frame: 0, ..self }
    }
}

/// Neighbouring invocations of `matmul` whose rows alternate, so that they load neighbouring rows
/// together. As many as the widest vectors of CPU drivers have lanes.
const LANES: u32 = 8;

/// Invocations of a workgroup of `matmul_quad`. All of them stay to the end, so there are few: more
/// would waste much of a small matrix.
pub const QUAD_WORKGROUP: u32 = 8;

/// Columns of a / 4 that `matmul_shared` multiplies at a time.
const SHARED_DEPTH4: u32 = 4;

/// Invocations of `matmul_shared` that load a, if a workgroup has so many.
const SHARED_LOADERS: u32 = 64;

/// Interface of `matmul_quad`: a register tile for each invocation, and four invocations that load
/// for each other.
pub const QUAD: Interface = kernel!("matmul_quad" like REGISTER);

/// Interface of `matmul_shared`: a tile in workgroup memory.
pub const SHARED: Interface = kernel!("matmul_shared" like REGISTER);

/// Interface of `matmul_matrix`: a tile in workgroup memory, multiplied on matrix units.
pub const MATRIX: Interface = kernel!("matmul_matrix" like REGISTER);

/// Rows, columns and depth of what one of [`MATRIX_SUBGROUPS`] multiplies at a time.
const MATRIX_QUARTER: u32 = SHARED_TILE / 2;

/// Operations that a product does as it writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Epilogue {
    /// No operation.
    #[default]
    None,
    /// Adds `bias[n]`.
    Bias,
    /// Adds `bias[n]` and the old value of c.
    BiasAccumulate,
    /// Adds `bias[n]` and writes the transpose.
    BiasTransposed,
    /// Adds `row_factors[m]` times the old value of c.
    RowFactors,
}

/// One product.
#[derive(Debug, Clone, Copy)]
pub struct Matmul {
    /// Storage of a and b.
    pub input: Storage,
    /// Storage of c.
    pub output: Storage,
    /// Operations as it writes.
    pub epilogue: Epilogue,
    /// The kernel.
    pub products: Products,
    /// Frames of a and c, each with [`MatmulParams::batch`] entries. All are multiplied with one b.
    /// Tiles in workgroup memory multiply all frames as one matrix, so that fewer tiles have empty
    /// rows: then c has the frames of a row next to each other, and the epilogue is none.
    pub frames: u32,
    /// Sizes, offsets and strides.
    pub params: MatmulParams,
}

impl Matmul {
    /// Returns the launch.
    pub fn launch(&self) -> Launch {
        let (params, entries) = if self.products.joins_frames() {
            (self.params.with_frames_as_rows(self.frames), self.params.batch)
        } else {
            (self.params, self.params.batch * self.frames)
        };
        let MatmulParams { m, m_stored, n4, k4, .. } = params;
        let (bias, accumulate, transposed, row_factors) = match self.epilogue {
            Epilogue::None => (false, false, false, false),
            Epilogue::Bias => (true, false, false, false),
            Epilogue::BiasAccumulate => (true, true, false, false),
            Epilogue::BiasTransposed => (true, false, true, false),
            Epilogue::RowFactors => (false, false, false, true),
        };
        let mut values = vec![
            ("HAS_BIAS", Value::Bool(bias)),
            ("ACCUMULATE", Value::Bool(accumulate)),
            ("ROW_FACTORS", Value::Bool(row_factors)),
            ("TRANSPOSED", Value::Bool(transposed)),
            ("Stored", Value::Type(self.input.wgsl_type())),
            ("Output", Value::Type(self.output.wgsl_type())),
        ];
        let (interface, rows) = match self.products {
            Products::Tile(MatmulTile::Register { rows, columns4 }) => {
                values.extend([
                    ("TILE_M", Value::U32(rows)),
                    ("TILE_N", Value::U32(columns4)),
                    ("LANES", Value::U32(if transposed { 1 } else { LANES })),
                    ("K_STEPS", Value::U32(if k4.is_multiple_of(2) { 2 } else { 1 })),
                ]);
                (REGISTER, WORKGROUP * rows)
            }
            Products::Tile(MatmulTile::Quad { rows, columns4 }) => {
                values.extend([
                    ("WORKGROUP", Value::U32(QUAD_WORKGROUP)),
                    ("TILE_M", Value::U32(rows)),
                    ("TILE_N", Value::U32(columns4)),
                    ("LANES", Value::U32(if transposed { 1 } else { LANES })),
                ]);
                (QUAD, QUAD_WORKGROUP * rows)
            }
            Products::Tile(MatmulTile::Shared { rows4, columns4 }) | Products::Narrow { rows4, columns4 } => {
                values.extend(shared_values((rows4, columns4), self.products.columns4(), k4));
                values.push(("FRAMES", Value::U32(self.frames)));
                (SHARED, SHARED_TILE)
            }
            Products::Matrix(units) => {
                values.push(("FRAMES", Value::U32(self.frames)));
                values.extend(matrix_values(units, k4));
                (MATRIX, SHARED_TILE)
            }
        };
        let workgroups = [m_stored.div_ceil(rows), n4.div_ceil(self.products.columns4()), entries];
        let macs = u64::from(entries) * u64::from(m) * u64::from(n4) * u64::from(k4) * 16;
        Launch { macs, ..interface.launch(values, &params, workgroups) }
    }
}

/// Returns the values of `matmul_shared` for products over `k4` vec4, with `rows4` times four rows
/// and `columns4` vec4 columns for each invocation, and `width4` for each workgroup.
fn shared_values((rows4, columns4): (u32, u32), width4: u32, k4: u32) -> [(&'static str, Value); 7] {
    let invocations = (SHARED_TILE / 4 / rows4) * (width4 / columns4);
    [
        ("WORKGROUP", Value::U32(invocations)),
        ("WIDTH4", Value::U32(width4)),
        ("BLOCKS", Value::U32((SHARED_LOADERS / invocations).max(1))),
        ("ROWS4", Value::U32(rows4)),
        ("COLUMNS4", Value::U32(columns4)),
        ("WHOLE", Value::Bool(k4.is_multiple_of(SHARED_DEPTH4))),
        // Only for 8x8, on GPUs with registers to spare: with 4x8, Xe-LPG spills and Adreno has
        // half as many waves.
        ("AHEAD", Value::Bool((rows4, columns4) == (2, 2))),
    ]
}

/// Returns the values of `matmul_matrix` on `units` for products over `k4` vec4.
fn matrix_values(PlannedUnits { side, lanes, .. }: PlannedUnits, k4: u32) -> [(&'static str, Value); 8] {
    let [left, right, sums] = if side == 8 {
        ["coop_mat8x8<f16, A>", "coop_mat8x8<f16, B>", "coop_mat8x8<f32, C>"]
    } else {
        ["coop_mat16x16<f16, A>", "coop_mat16x16<f16, B>", "coop_mat16x16<f32, C>"]
    };
    let invocations = lanes * MATRIX_SUBGROUPS;
    [
        ("WORKGROUP", Value::U32(invocations)),
        ("SIDE", Value::U32(side)),
        ("MATRICES", Value::U32(MATRIX_QUARTER / side)),
        ("LOADS", Value::U32(SHARED_TILE * MATRIX_QUARTER / 4 / invocations)),
        ("WHOLE", Value::Bool((k4 * 4).is_multiple_of(MATRIX_QUARTER))),
        ("Left", Value::Type(left)),
        ("Right", Value::Type(right)),
        ("Sums", Value::Type(sums)),
    ]
}
