//! Problems of `regroup`: the shortcuts of residual levels and of size changes, and patches of
//! pixels.

use wgvae::Storage;
use wgvae::kernels::regroup::{RegroupParams, Regrouping};

use super::{Problem, STORAGES, random, room, tolerance};

pub(super) fn problems() -> Vec<Problem> {
    let mut problems = Vec::new();
    for storage in STORAGES {
        for by_place in [false, true] {
            // Channels of x and y, and frames that become one, as in Qwen-Image 2.1 and
            // HunyuanImage 2.1, and odd ones.
            for (from, to, frames) in
                [(96, 96, 1), (48, 96, 2), (12, 12, 2), (6, 3, 1), (10, 5, 2), (32, 128, 1), (7, 4, 1)]
            {
                problems.push(means([storage; 2], by_place, (from, to), frames, 2));
            }
            for channels in [(32, 32), (12, 4), (9, 3)] {
                problems.push(means([storage; 2], by_place, channels, 1, 1));
            }
            for (from, to, frames) in
                [(96, 96, 2), (96, 48, 2), (64, 32, 1), (12, 6, 1), (3, 6, 2), (128, 32, 1), (4, 7, 1)]
            {
                problems.push(copies([storage; 2], by_place, (from, to), frames, 2));
            }
            for channels in [(16, 128), (3, 6), (5, 20)] {
                problems.push(copies([storage; 2], by_place, channels, 1, 1));
            }
        }
        problems.push(every_second_row(storage));
        // The result of a network is in f32.
        for channels in [(64, 8), (18, 6)] {
            problems.push(means([storage, Storage::F32], false, channels, 1, 1));
        }
        // Images with and without opacity, whose patches of 2x2 pixels are channels.
        for channels in [3, 4] {
            problems.push(means([storage; 2], false, (channels, channels * 4), 1, 2));
            problems.push(copies([storage, Storage::F32], false, (channels * 4, channels), 1, 2));
        }
        problems.push(means([storage; 2], false, (3, 48), 1, 4));
        problems.push(copies([storage, Storage::F32], false, (48, 3), 1, 4));
    }
    problems
}

/// Makes a problem with means, with these storages of x and y.
fn means(storages: [Storage; 2], by_place: bool, (from, to): (u32, u32), frames: u32, side: u32) -> Problem {
    let (width, height) = (7, 3);
    let places = frames * side * side;
    let x_width = width * side + (side - 1);
    let params = params((width, height), (x_width, from, to), (side, places, from * places / to));
    // Half of them add to what is there.
    let sum = to % 8 == 0 || side == 1 && to == 4;
    problem(storages, [false, by_place, sum], x_width * height * side, params)
}

/// Makes a problem with copies, with these storages of x and y.
fn copies(storages: [Storage; 2], by_place: bool, (from, to): (u32, u32), frames: u32, side: u32) -> Problem {
    let (x_width, x_height) = (5, 3);
    let places = frames * side * side;
    let params = params((x_width * side, x_height * side), (x_width, from, to), (side, places, to * places / from));
    problem(storages, [true, by_place, to % 8 == 0], x_width * x_height, params)
}

/// Makes a problem that adds to every second row.
fn every_second_row(storage: Storage) -> Problem {
    let plain = params((5, 3), (5, 24, 24), (1, 1, 1));
    let params = RegroupParams { y_row: plain.y_row * 2, ..plain };
    problem([storage; 2], [true, false, true], 15, params)
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
        y_row: width * to.div_ceil(4),
        side,
        places,
        count,
        scale: 0.5,
    }
}

fn problem(
    [input, output]: [Storage; 2],
    [copies, by_place, sum]: [bool; 3],
    x_pixels: u32,
    params: RegroupParams,
) -> Problem {
    let relu = !copies && params.side == 1;
    let elements = params.y_offset + params.pixels / params.width * params.y_row;
    let y = if sum { random(2, output, elements, 1.0) } else { room(output, elements) };
    let flags = format!("copies {copies} by_place {by_place} relu {relu} sum {sum}");
    Problem {
        name: format!("regroup {flags} {params:?} {input:?} to {output:?}"),
        launch: Regrouping { input, output, copies, by_place, relu, sum, params }.launch(),
        bindings: vec![random(1, input, params.x_offset + x_pixels * params.x_channels4, 1.0), y],
        tolerance: tolerance(output),
    }
}
