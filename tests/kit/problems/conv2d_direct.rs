//! Problems of direct convolutions: the decoder's first and last, and those of toy models.

use wgvae::Storage;
use wgvae::kernels::choice::DirectTile;
use wgvae::kernels::conv2d_direct::{Conv2dDirect, Conv2dDirectParams};
use wgvae::model::graph::Border;

use super::{BORDERS, Problem, STORAGES, random, room, tolerance};

/// Width and height of the image, input and output channels / 4: first and last convolution, odd
/// sizes, a single pixel.
const SHAPES: [(u32, u32, u32, u32); 5] =
    [(16, 8, 1, 128), (32, 16, 32, 1), (13, 7, 2, 3), (2, 2, 1, 1), (18, 10, 4, 5)];

pub(super) fn problems() -> Vec<Problem> {
    let mut problems = Vec::new();
    for storage in STORAGES {
        for (pixels, columns4) in [(8, 1), (4, 1), (4, 2)] {
            for shape in SHAPES {
                let tile = (pixels, columns4);
                // Images that are mirrored or copied beyond their borders have a pixel or two.
                for &border in if shape.0 == 2 { &BORDERS[1..] } else { &BORDERS[..1] } {
                    problems.push(problem(storage, storage, tile, shape, (1, 1, 0), false, border));
                    problems.push(problem(storage, Storage::F32, tile, shape, (1, 1, 0), false, border));
                }
                if shape.0 % 2 == 0 && shape.1 % 2 == 0 {
                    problems.push(problem(storage, storage, tile, shape, (1, 1, 0), true, Border::Around));
                }
            }
        }
        // Three taps with two past frames, one spare frame, and frames without taps in time.
        for (times, frames, spare) in [(3, 1, 0), (3, 4, 0), (3, 3, 1), (1, 3, 0), (1, 4, 2)] {
            for shape in [(13, 7, 2, 3), (18, 10, 4, 1)] {
                let (upsample, in_time) = (shape.0 % 2 == 0, (times, frames, spare));
                for &border in if times == 3 { &BORDERS[1..] } else { &BORDERS[..1] } {
                    problems.push(problem(storage, storage, (8, 1), shape, in_time, false, border));
                    let border = if upsample { Border::Around } else { border };
                    problems.push(problem(storage, Storage::F32, (4, 2), shape, in_time, upsample, border));
                }
            }
        }
    }
    problems
}

/// Makes a problem of the lower half of the image, where x begins one row above it, or of an image
/// that is not zero beyond its border. It computes `frames` frames with `times` taps in time; x has
/// `spare` frames more than needed.
fn problem(
    input: Storage,
    output: Storage,
    (pixels, columns4): (u32, u32),
    (width, height, c_in4, c_out4): (u32, u32, u32, u32),
    (times, frames, spare): (u32, u32, u32),
    upsample: bool,
    border: Border,
) -> Problem {
    let factor = 1 + u32::from(upsample);
    let (x_width, x_height) = (width / factor, height / factor);
    // Such an image has all rows, to begin with the border.
    let y0 = if border == Border::Around { height / 2 } else { 0 };
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
            if upsample { " upsample relu".to_owned() } else { format!(" {border:?}") }
        ),
        launch: Conv2dDirect { input, output, upsample, times, relu: upsample, border, tile, params }.launch(),
        bindings: vec![
            random(1, input, (x_height - x_row0) * x_width * frames_in * c_in4, 1.0),
            random(2, input, times * 9 * c_in4 * 4 * c_out4, 0.3),
            random(3, Storage::F32, c_out4, 1.0),
            room(output, (height - y0) * width * frames * c_out4),
        ],
        tolerance: tolerance(output),
    }
}
