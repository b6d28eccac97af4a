//! Convolutions of each channel by itself, perhaps with a gate. Shader: `conv2d_depthwise.wgsl`.

use crate::kernels::activation;
use crate::kernels::{Launch, Value, kernel, spread};
use crate::model::graph::Activation;
use crate::tensor::Storage;

kernel! {
    /// Interface of `conv2d_depthwise`.
    INTERFACE = "conv2d_depthwise"(x: Read, weights: Read, bias: Read, y: ReadWrite);
    DepthwiseParams {
        spans: u32, rows: u32, y0: u32, width: u32, height: u32, x_row0: u32, y_row0: u32,
        x_channels4: u32, y_channels4: u32, scale: f32, gate_scale: f32,
    }
}

/// Neighbouring pixels of an invocation.
const PIXELS: u32 = 4;

/// A convolution of each channel to be launched.
#[derive(Debug, Clone, Copy)]
pub struct Depthwise {
    /// Storage of `x`.
    pub input: Storage,
    /// Storage of `y`.
    pub output: Storage,
    /// Side of the filter: 3 or 5.
    pub side: u32,
    /// Function that is applied to `x`.
    pub activation: Option<Activation>,
    /// True if the second half of the channels is a gate for the first.
    pub gated: bool,
    /// Parameters, without `spans`.
    pub params: DepthwiseParams,
}

impl Depthwise {
    /// Returns the launch.
    pub fn launch(self) -> Launch {
        let spans = self.params.width.div_ceil(PIXELS);
        let params = DepthwiseParams { spans, ..self.params };
        let values = vec![
            ("SIDE", Value::U32(self.side)),
            ("PIXELS", Value::U32(PIXELS)),
            ("COLUMNS", Value::U32(PIXELS + self.side - 1)),
            activation::value(self.activation),
            ("GATED", Value::Bool(self.gated)),
            ("Stored", Value::Type(self.input.wgsl_type())),
            ("Output", Value::Type(self.output.wgsl_type())),
        ];
        let pixels = u64::from(params.rows) * u64::from(params.width);
        Launch {
            macs: pixels * u64::from(params.x_channels4) * 4 * u64::from(self.side * self.side),
            ..INTERFACE.launch(values, &params, spread(params.rows * spans * params.y_channels4))
        }
    }
}
