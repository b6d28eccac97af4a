//! Problems of convolutions of each channel: those of DC-AE's attention and of its gated blocks.

use wgvae::Storage;
use wgvae::kernels::conv2d_depthwise::{Depthwise, DepthwiseParams};
use wgvae::model::graph::Activation;

use super::{Problem, STORAGES, random, room, tolerance};

/// Width and height of the image, channels / 4 of the result: real layers at reduced size, odd
/// sizes, a single pixel.
const SHAPES: [(u32, u32, u32); 5] = [(16, 12, 24), (13, 7, 3), (5, 3, 17), (1, 1, 1), (2, 9, 64)];

pub(super) fn problems() -> Vec<Problem> {
    let mut problems = Vec::new();
    for storage in STORAGES {
        for shape in SHAPES {
            problems.push(problem((storage, storage), 5, None, false, shape));
            problems.push(problem((storage, Storage::F32), 3, None, false, shape));
            problems.push(problem((storage, storage), 3, Some(Activation::Relu), false, shape));
            problems.push(problem((storage, storage), 3, Some(Activation::Silu), true, shape));
        }
    }
    problems
}

/// Makes a problem of the lower half of the image, where x begins with the first row that it sees.
fn problem(
    (input, output): (Storage, Storage),
    side: u32,
    activation: Option<Activation>,
    gated: bool,
    (width, height, y_channels4): (u32, u32, u32),
) -> Problem {
    let y0 = height / 2;
    let x_row0 = y0.saturating_sub(side / 2);
    let x_channels4 = y_channels4 * if gated { 2 } else { 1 };
    let params = DepthwiseParams {
        spans: 0,
        rows: height - y0,
        y0,
        width,
        height,
        x_row0,
        y_row0: y0,
        x_channels4,
        y_channels4,
        scale: 0.5,
        gate_scale: 0.75,
    };
    Problem {
        name: format!(
            "conv2d_depthwise {side}x{side} w{width} h{height} c{} {activation:?}{} {input:?} to {output:?}",
            x_channels4 * 4,
            if gated { " gated" } else { "" }
        ),
        launch: Depthwise { input, output, side, activation, gated, params }.launch(),
        bindings: vec![
            random(1, input, (height - x_row0) * width * x_channels4, 2.0),
            random(2, Storage::F32, side * side * x_channels4, 0.5),
            random(3, Storage::F32, x_channels4, 1.0),
            room(output, (height - y0) * width * y_channels4),
        ],
        tolerance: tolerance(output),
    }
}
