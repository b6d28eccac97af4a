//! The batched product of Winograd convolutions on matrix units: multiplies halves, sums in f32, and
//! stores halves.
//! Shader: `matmul_matrix.wgsl`.

use crate::kernels::choice::MATRICES;
use crate::kernels::{Access, Interface, Launch, Value, Variant, kernel, params};
use crate::limits::PlannedUnits;

params! {
    /// Parameters of `matmul_matrix`. Offsets and strides count vec4 elements.
    MatrixParams, MATRIX_PARAMS {
        k4: u32, a_offset: u32, a_row: u32, batch: u32, a_batch: u32, a_frame: u32, b_batch: u32,
        c_offset: u32, c_row: u32, c_batch: u32, c_frame: u32,
    }
}

/// Subgroups of a workgroup, each of which computes a quarter of the square.
pub const SUBGROUPS: u32 = 4;

/// Interface of `matmul_matrix`.
pub const INTERFACE: Interface =
    kernel!("matmul_matrix", &[("a", Access::Read), ("b", Access::Read), ("c", Access::ReadWrite)], MATRIX_PARAMS);

/// One product: c = a b^T. Rows of a and of b are along k.
#[derive(Debug, Clone, Copy)]
pub struct MatrixMatmul {
    /// Matrix units that compute the product.
    pub units: PlannedUnits,
    /// Rows of a and of c: a multiple of [`MATRICES`] times the units' side.
    pub m: u32,
    /// Rows of b and columns of c: also such a multiple.
    pub n: u32,
    /// Frames of a and c, each with [`MatrixParams::batch`] entries. All are multiplied with one b.
    pub frames: u32,
    /// Sizes, offsets and strides.
    pub params: MatrixParams,
}

impl MatrixMatmul {
    /// Returns the launch.
    pub fn launch(&self) -> Launch {
        let Self { units: PlannedUnits { side, lanes, one_size, .. }, m, n, frames, params } = *self;
        let entries = params.batch * frames;
        let (square, invocations) = (side * MATRICES, lanes * SUBGROUPS);
        let [left, right, sums] = if side == 8 {
            ["coop_mat8x8<f16, A>", "coop_mat8x8<f16, B>", "coop_mat8x8<f32, C>"]
        } else {
            ["coop_mat16x16<f16, A>", "coop_mat16x16<f16, B>", "coop_mat16x16<f32, C>"]
        };
        let values = vec![
            ("WORKGROUP", Value::U32(invocations)),
            ("SIDE", Value::U32(side)),
            ("SPLITS", Value::Bool(!one_size)),
            ("WHOLE", Value::Bool((params.k4 * 4).is_multiple_of(side * 2))),
            // A step is two matrices deep.
            ("LOADS", Value::U32((square * side * 2 / 4).div_ceil(invocations))),
            ("Left", Value::Type(left)),
            ("Right", Value::Type(right)),
            ("Sums", Value::Type(sums)),
        ];
        Launch {
            variant: Variant { file: INTERFACE.file, values },
            workgroups: [m / square, n / square, entries],
            params: bytemuck::bytes_of(&params).to_vec(),
            macs: u64::from(entries) * u64::from(m) * u64::from(n) * u64::from(params.k4) * 4,
        }
    }
}
