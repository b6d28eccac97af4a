//! Direct 3x3 convolution for few channels. Shader: `conv2d_direct.wgsl`.

use crate::kernels::choice::DirectTile;
use crate::kernels::{Launch, Value, border, groups, kernel};
use crate::model::graph::Border;
use crate::tensor::Storage;

kernel! {
    /// Interface of `conv2d_direct`.
    INTERFACE = "conv2d_direct"(x: Read, w: Read, bias: Read, y: ReadWrite);
    Conv2dDirectParams {
        spans: u32, rows: u32, y0: u32, width: u32, height: u32, x_width: u32, x_row0: i32,
        y_row0: i32, c_in4: u32, c_out4: u32, frames_in: u32, frames: u32, scale: f32,
    }
}

/// One convolution of a band.
#[derive(Debug, Clone, Copy)]
pub struct Conv2dDirect {
    /// Storage of x and w.
    pub input: Storage,
    /// Storage of y.
    pub output: Storage,
    /// True if x is half the image's size.
    pub upsample: bool,
    /// Taps in time.
    pub times: u32,
    /// Border of the image, of a filter that keeps the size.
    pub border: Border,
    /// True if the result is cut off below 0.
    pub relu: bool,
    /// Register tile.
    pub tile: DirectTile,
    /// Sizes and offsets; [`Self::launch`] sets `spans`.
    pub params: Conv2dDirectParams,
}

impl Conv2dDirect {
    /// Returns the launch, with one invocation for each register tile of each frame.
    pub fn launch(&self) -> Launch {
        let DirectTile { pixels, columns4 } = self.tile;
        let params = Conv2dDirectParams { spans: self.params.width.div_ceil(pixels), ..self.params };
        let Conv2dDirectParams { spans, rows, width, c_in4, c_out4, frames, .. } = params;
        let products = u64::from(c_in4) * u64::from(c_out4) * u64::from(self.times) * 16 * 9;
        let values = vec![
            ("TILE_X", Value::U32(pixels)),
            ("TILE_X_HALO", Value::U32(pixels + 2)),
            ("TILE_N", Value::U32(columns4)),
            ("TAPS_T", Value::U32(self.times)),
            ("SHIFT", Value::U32(u32::from(self.upsample))),
            ("RELU", Value::Bool(self.relu)),
            border::value(self.border),
            ("Stored", Value::Type(self.input.wgsl_type())),
            ("Output", Value::Type(self.output.wgsl_type())),
        ];
        let workgroups =
            [c_out4.div_ceil(columns4).saturating_mul(frames), groups(u64::from(spans) * u64::from(rows)), 1];
        let macs = u64::from(rows) * u64::from(width) * u64::from(frames) * products;
        Launch { macs, ..INTERFACE.launch(values, &params, workgroups) }
    }
}
