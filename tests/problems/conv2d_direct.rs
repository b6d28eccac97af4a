//! Problems of direct convolutions: the decoder's first and last, and those of toy models.

use wgvae::Storage;
use wgvae::kernels::choice::DirectTile;
use wgvae::kernels::conv2d_direct::{Conv2dDirect, Conv2dDirectParams};

use super::{Problem, STORAGES, random, room, tolerance};

/// Width and height of the image, input and output channels / 4: first and last convolution, odd
/// sizes, a single pixel.
const SHAPES: [(u32, u32, u32, u32); 5] =
    [(16, 8, 1, 128), (32, 16, 32, 1), (13, 7, 2, 3), (2, 2, 1, 1), (18, 10, 4, 5)];

pub(super) fn problems() -> Vec<Problem> {
    let mut problems = Vec::new();
    for storage in STORAGES {
        for (pixels, columns4) in [(8, 1), (4, 1), (4, 2)] {
            for shape in SHAPES {
                problems.push(problem(storage, storage, (pixels, columns4), shape, (1, 1, 0), false));
                problems.push(problem(storage, Storage::F32, (pixels, columns4), shape, (1, 1, 0), false));
                if shape.0 % 2 == 0 && shape.1 % 2 == 0 {
                    problems.push(problem(storage, storage, (pixels, columns4), shape, (1, 1, 0), true));
                }
            }
        }
        // Three taps with two past frames, one spare frame, and frames without taps in time.
        for (times, frames, spare) in [(3, 1, 0), (3, 4, 0), (3, 3, 1), (1, 3, 0), (1, 4, 2)] {
            for shape in [(13, 7, 2, 3), (18, 10, 4, 1)] {
                let upsample = shape.0 % 2 == 0;
                problems.push(problem(storage, storage, (8, 1), shape, (times, frames, spare), false));
                problems.push(problem(storage, Storage::F32, (4, 2), shape, (times, frames, spare), upsample));
            }
        }
    }
    problems
}

/// Makes a problem of the lower half of the image, where x begins one row above it, or of a
/// mirrored image. It computes `frames` frames with `times` taps in time; x has `spare` frames more
/// than needed.
fn problem(
    input: Storage,
    output: Storage,
    (pixels, columns4): (u32, u32),
    (width, height, c_in4, c_out4): (u32, u32, u32, u32),
    (times, frames, spare): (u32, u32, u32),
    upsample: bool,
) -> Problem {
    let factor = 1 + u32::from(upsample);
    let (x_width, x_height) = (width / factor, height / factor);
    // Mirrored images have all rows, to begin with the border.
    let mirror = !upsample && (width == 2 || times == 3);
    let y0 = if mirror { 0 } else { height / 2 };
    let x_row0 = (y0.saturating_sub(1)) / factor;
    let frames_in = frames + times - 1 + spare;
    let params = Conv2dDirectParams {
        spans: 0,
        rows: height - y0,
        y0,
        width,
        height,
        x_width,
        x_row0: i32::try_from(x_row0).unwrap(),
        y_row0: i32::try_from(y0).unwrap(),
        c_in4,
        c_out4,
        frames_in,
        frames,
        scale: 0.5,
    };
    let tile = DirectTile { pixels, columns4 };
    Problem {
        name: format!(
            "conv2d_direct w{width} h{height} c{}->{}{} frames {frames_in}->{frames} taps {times} tile{pixels}x{columns4} {input:?} to {output:?}",
            c_in4 * 4,
            c_out4 * 4,
            if upsample {
                " upsample relu"
            } else if mirror {
                " mirror"
            } else {
                ""
            }
        ),
        launch: Conv2dDirect { input, output, upsample, times, relu: upsample, mirror, tile, params }.launch(),
        bindings: vec![
            random(1, input, (x_height - x_row0) * x_width * frames_in * c_in4, 1.0),
            random(2, input, times * 9 * c_in4 * 4 * c_out4, 0.3),
            random(3, Storage::F32, c_out4, 1.0),
            room(output, (height - y0) * width * frames * c_out4),
        ],
        tolerance: tolerance(output),
    }
}
