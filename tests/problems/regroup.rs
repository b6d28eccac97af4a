//! Problems of `regroup`: the shortcuts of residual levels, and patches of pixels.

use wgvae::Storage;
use wgvae::kernels::regroup::{RegroupKind, RegroupParams, regroup};

use super::{Problem, STORAGES, random, room, tolerance};

pub(super) fn problems() -> Vec<Problem> {
    let mut problems = Vec::new();
    for storage in STORAGES {
        // Channels of x and y, and frames that become one, as in Qwen-Image 2.1 and odd ones.
        for (from, to, frames) in [(96, 96, 1), (48, 96, 2), (12, 12, 2), (6, 3, 1), (10, 5, 2)] {
            problems.push(halving(storage, (from, to), frames, 2));
        }
        problems.extend([(32, 32), (12, 4), (9, 3)].map(|channels| halving(storage, channels, 1, 1)));
        for (from, to, frames) in [(96, 96, 2), (96, 48, 2), (64, 32, 1), (12, 6, 1), (3, 6, 2)] {
            problems.push(doubling([storage; 2], (from, to), frames));
        }
        // Images with and without opacity, whose patches of 2x2 pixels are channels.
        for channels in [3, 4] {
            problems.push(halving(storage, (channels, channels * 4), 1, 2));
            problems.push(doubling([storage, Storage::F32], (channels * 4, channels), 1));
        }
        problems.push(halving(storage, (3, 48), 1, 4));
        problems.push(growing([storage, Storage::F32], (48, 3), (1, 4)));
    }
    problems
}

fn halving(storage: Storage, (from, to): (u32, u32), frames: u32, side: u32) -> Problem {
    let (width, height) = (7, 3);
    let places = frames * side * side;
    let x_width = width * side + 1;
    let params = params((width, height), (x_width, from, to), (side, places, from * places / to));
    problem([storage; 2], false, (x_width * height * side, params))
}

fn doubling(storages: [Storage; 2], channels: (u32, u32), frames: u32) -> Problem {
    growing(storages, channels, (frames, 2))
}

fn growing(storages: [Storage; 2], (from, to): (u32, u32), (frames, side): (u32, u32)) -> Problem {
    let (x_width, x_height) = (5, 3);
    let places = frames * side * side;
    let params = params((x_width * side, x_height * side), (x_width, from, to), (side, places, to * places / from));
    problem(storages, true, (x_width * x_height, params))
}

fn params(
    (width, height): (u32, u32),
    (x_width, from, to): (u32, u32, u32),
    (side, places, count): (u32, u32, u32),
) -> RegroupParams {
    RegroupParams {
        pixels: width * height,
        width,
        channels: to,
        channels4: to.div_ceil(4),
        x_width,
        x_channels4: from.div_ceil(4),
        x_offset: 3,
        y_offset: 2,
        side,
        places,
        count,
        scale: 0.5,
    }
}

fn problem([input, output]: [Storage; 2], double: bool, (x_pixels, params): (u32, RegroupParams)) -> Problem {
    // Every second kind adds to what is there.
    let sum = params.channels % 8 == 0 || !double && params.side == 1 && params.channels == 4;
    let relu = !double && params.side == 1;
    let elements = params.y_offset + params.pixels * params.channels4;
    let y = if sum { random(2, output, elements, 1.0) } else { room(output, elements) };
    Problem {
        name: format!("regroup double {double} relu {relu} sum {sum} {params:?} {input:?} {output:?}"),
        launch: regroup(input, output, RegroupKind { double, relu, sum }, params),
        bindings: vec![random(1, input, params.x_offset + x_pixels * params.x_channels4, 1.0), y],
        tolerance: tolerance(input),
    }
}
