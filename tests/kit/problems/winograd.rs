//! Problems of the three transforms of Winograd convolutions.

use wgvae::Storage;
use wgvae::kernels::choice::Transforms;
use wgvae::kernels::winograd::{
    InParams, OutParams, Storages, WeightsParams, WinogradEpilogue, WinogradPrologue, input, output, weights,
};
use wgvae::model::graph::{Activation, Border, Doubling};

use super::{BORDERS, Problem, STORAGES, noise, numbers, random, room, tolerance};

/// Width and height of the image, channels / 4: whole tiles, odd sizes, less than a tile.
const SHAPES: [(u32, u32, u32); 4] = [(32, 16, 32), (18, 10, 5), (13, 7, 2), (2, 2, 1)];
/// Frames, past frames that v has room for, and a shape.
const FRAMES: [(u32, u32, (u32, u32, u32)); 4] =
    [(3, 0, (18, 10, 3)), (4, 2, (18, 10, 5)), (1, 2, (32, 16, 8)), (3, 1, (13, 7, 2))];

pub(super) fn problems() -> Vec<Problem> {
    let mut problems = Vec::new();
    for kernel in kernels() {
        for shape in SHAPES {
            for (normalize, activation) in
                [(false, None), (true, None), (true, Some(Activation::Silu)), (false, Some(Activation::Relu))]
            {
                for doubling in [None, Some(Doubling::Nearest), Some(Doubling::Shuffle)] {
                    if doubling.is_none() || (shape.0 % 2 == 0 && shape.1 % 2 == 0) {
                        // Networks with other borders have no ReLU and do not shuffle.
                        let common = activation == Some(Activation::Relu) || doubling == Some(Doubling::Shuffle);
                        let borders: &[Border] = if common { &BORDERS[..1] } else { &BORDERS };
                        for &border in borders {
                            let prologue = WinogradPrologue { normalize, activation, doubling, border };
                            problems.push(input_problem(kernel, shape, (1, 0), prologue));
                        }
                    }
                }
            }
            for (accumulate, moments) in [(false, false), (false, true), (true, false), (true, true)] {
                for relu in [false, true] {
                    problems.push(output_problem(kernel, shape, 1, WinogradEpilogue { accumulate, relu, moments }));
                }
            }
        }
        problems.extend(problems_of_frames(kernel));
    }
    for storages in storages() {
        for (c_in, c_out4, column0, tile_n) in [(128, 32, 0, 4), (20, 5, 0, 4), (4, 7, 4, 2), (16, 16, 8, 8)] {
            problems.push(weights_problem(storages, (c_in, c_out4, column0, tile_n), (1, 0)));
        }
        for tap in 0..3 {
            problems.push(weights_problem(storages, (20, 5, 0, 4), (3, tap)));
            problems.push(weights_problem(storages, (4, 7, 4, 2), (3, tap)));
        }
    }
    problems
}

/// Returns the storages of plans, and the one of `fast` in a stage that writes the result: f32,
/// from products in halves.
fn storages() -> Vec<Storages> {
    let mut storages = Vec::from(STORAGES.map(Storages::of));
    storages.push(Storages::of(Storage::FastF16));
    storages.push(Storages { stored: Storage::F32, transformed: Storage::F16 });
    storages
}

fn kernels() -> impl Iterator<Item = (Transforms, Storages)> {
    let both = [Transforms::Runs, Transforms::Pairs].into_iter();
    both.flat_map(|transforms| storages().into_iter().map(move |storages| (transforms, storages)))
}

fn problems_of_frames(kernel: (Transforms, Storages)) -> Vec<Problem> {
    let mut problems = Vec::new();
    for (frames, past, shape) in FRAMES {
        for (normalize, activation) in [(false, None), (true, Some(Activation::Silu))] {
            for doubling in [None, Some(Doubling::Nearest), Some(Doubling::Shuffle)] {
                if doubling.is_none() || shape.0 % 2 == 0 {
                    let prologue = WinogradPrologue { normalize, activation, doubling, border: Border::Around };
                    problems.push(input_problem(kernel, shape, (frames, past), prologue));
                }
            }
        }
        for accumulate in [false, true] {
            let epilogue = WinogradEpilogue { accumulate, relu: false, moments: true };
            problems.push(output_problem(kernel, shape, frames, epilogue));
        }
    }
    problems
}

/// Makes a problem of `frames` frames that follow `past` others in v.
fn input_problem(
    (transforms, storages): (Transforms, Storages),
    (width, height, frame4): (u32, u32, u32),
    (frames, past): (u32, u32),
    prologue: WinogradPrologue,
) -> Problem {
    let channels4 = frames * frame4;
    let (v_channels4, v_channel0) = ((past + frames) * frame4, past * frame4);
    let factor = 1 + u32::from(prologue.doubling.is_some());
    let parts = if prologue.doubling == Some(Doubling::Shuffle) { 4 } else { 1 };
    let (tile_x0, tiles_x) = (width.div_ceil(4) / 3, width.div_ceil(4) - width.div_ceil(4) / 3);
    let tiles = tiles_x * height.div_ceil(4);
    let params = InParams {
        tiles,
        tiles_x,
        tile_x0,
        y0: 0,
        width,
        height,
        x_width: width / factor,
        x_row0: 0,
        channels4,
        frame4,
        v_channels4,
        v_channel0,
    };
    Problem {
        name: format!(
            "winograd_in {transforms:?} w{width} h{height} c{} frames {frames} after {past} {prologue:?} {storages:?}",
            frame4 * 4
        ),
        launch: input(transforms, storages, prologue, params),
        bindings: vec![
            random(1, storages.stored, width / factor * (height / factor) * channels4 * parts, 2.0),
            if prologue.normalize { random(2, Storage::F32, channels4 * 2, 1.0) } else { None },
            room(storages.transformed, 36 * tiles * v_channels4),
        ],
        tolerance: tolerance(storages.transformed),
    }
}

fn output_problem(
    (transforms, storages): (Transforms, Storages),
    (width, height, bias4): (u32, u32, u32),
    frames: u32,
    epilogue: WinogradEpilogue,
) -> Problem {
    let channels4 = frames * bias4;
    let (tiles_x, run) = (width.div_ceil(4), 3);
    let rows = height.div_ceil(4);
    let runs_x = tiles_x.div_ceil(run);
    let params = OutParams {
        tiles: tiles_x * rows,
        tiles_x,
        tile_x0: 0,
        run,
        runs_x,
        runs: runs_x * rows,
        y0: 4,
        width,
        height: 4 + height,
        y_row0: 3,
        channels4,
        bias4,
        moments_offset: 2,
        scale: 0.5,
    };
    let y = (height + 1) * width * channels4;
    let mut m = noise(1, 36 * params.tiles * channels4 * 4, 1.0);
    if epilogue.relu && epilogue.moments {
        // All pixels of a channel of the last tile, and the moments of its run, become NaN.
        m[((8 * params.tiles * channels4) * 4 - 1) as usize] = f32::NAN;
    }
    Problem {
        name: format!(
            "winograd_out {transforms:?} w{width} h{height} c{} frames {frames} {epilogue:?} {storages:?}",
            bias4 * 4
        ),
        launch: output(transforms, storages, epilogue, params),
        bindings: vec![
            numbers(storages.transformed, &m),
            random(2, Storage::F32, bias4, 1.0),
            if epilogue.accumulate { random(3, storages.stored, y, 1.0) } else { room(storages.stored, y) },
            if epilogue.moments { room(Storage::F32, (2 + params.runs) * channels4 * 3) } else { None },
        ],
        tolerance: tolerance(storages.stored),
    }
}

/// Makes a problem of tap `tap` in time of `times`.
fn weights_problem(
    storages: Storages,
    (c_in, c_out4, column0, tile_n): (u32, u32, u32, u32),
    (times, tap): (u32, u32),
) -> Problem {
    let blocks = (c_out4 - column0).div_ceil(tile_n);
    let (k, k0, w_offset) = (times * c_in, tap * c_in, tap * 9 * c_in * c_out4);
    let params = WeightsParams { c_in, c_out4, column0, tile_n, blocks, k, k0, w_offset };
    Problem {
        name: format!(
            "winograd_weights c{c_in}->{} from {} blocks of {} tap {tap} of {times} {storages:?}",
            c_out4 * 4,
            column0 * 4,
            tile_n * 4
        ),
        launch: weights(storages, params),
        bindings: vec![
            random(1, storages.stored, times * 9 * c_in * c_out4, 1.0),
            room(storages.transformed, 36 * blocks * k * tile_n),
        ],
        tolerance: tolerance(storages.transformed),
    }
}
