//! Problems of `regroup`: the shortcuts of residual levels and of size changes, in images and in
//! clips, and patches of pixels.

use wgvae::Storage;
use wgvae::kernels::regroup::{RegroupParams, Regrouping};

use super::{Data, Elements, Problem, STORAGES, noise, numbers, random, room, tolerance};

pub(super) fn problems() -> Vec<Problem> {
    let mut problems = Vec::new();
    for storage in STORAGES {
        for by_place in [false, true] {
            // Channels of x and y, and frames that become one, as in Qwen-Image 2.1 and
            // HunyuanImage 2.1, and odd ones.
            for (from, to, frames) in
                [(96, 96, 1), (48, 96, 2), (12, 12, 2), (6, 3, 1), (10, 5, 2), (32, 128, 1), (7, 4, 1)]
            {
                problems.push(means([storage; 2], by_place, (from, to), frames, 2).problem());
            }
            for channels in [(32, 32), (12, 4), (9, 3)] {
                problems.push(means([storage; 2], by_place, channels, 1, 1).problem());
            }
            for (from, to, frames) in
                [(96, 96, 2), (96, 48, 2), (64, 32, 1), (12, 6, 1), (3, 6, 2), (128, 32, 1), (4, 7, 1)]
            {
                problems.push(copies([storage; 2], by_place, (from, to), frames, 2).problem());
            }
            for channels in [(16, 128), (3, 6), (5, 20)] {
                problems.push(copies([storage; 2], by_place, channels, 1, 1).problem());
            }
        }
        problems.push(every_second_row(storage));
        problems.push(not_finite(storage));
        // The result of a network is in f32.
        for channels in [(64, 8), (18, 6)] {
            problems.push(means([storage, Storage::F32], false, channels, 1, 1).problem());
        }
        // Images with and without opacity, whose patches of 2x2 pixels are channels.
        for channels in [3, 4] {
            problems.push(means([storage; 2], false, (channels, channels * 4), 1, 2).problem());
            problems.push(copies([storage, Storage::F32], false, (channels * 4, channels), 1, 2).problem());
        }
        problems.push(means([storage; 2], false, (3, 48), 1, 4).problem());
        problems.push(copies([storage, Storage::F32], false, (48, 3), 1, 4).problem());
        problems.extend(of_clips(storage));
    }
    problems
}

/// Makes the problems of Wan 2.2: frames of one part, and patches with columns before rows.
fn of_clips(storage: Storage) -> Vec<Problem> {
    let mut problems = Vec::new();
    // Channels of x and y; frames that become one, and frames of the smaller tensor.
    for (channels, times, frames) in [((40, 80), 2, 2), ((80, 160), 2, 1), ((24, 24), 1, 4), ((6, 6), 2, 3)] {
        problems.push(in_time(means([storage; 2], false, channels, times, 2), frames));
    }
    problems.push(in_time(means([storage; 2], false, (32, 32), 1, 1), 3));
    for (channels, times, frames) in [((64, 64), 2, 1), ((64, 64), 2, 2), ((64, 32), 1, 4), ((12, 6), 2, 3)] {
        problems.push(in_time(copies([storage; 2], false, channels, times, 2), frames));
    }
    for frames in [1, 4] {
        problems.push(in_columns(means([storage; 2], false, (3, 12), 1, 2), frames));
        problems.push(in_columns(copies([storage, Storage::F32], false, (12, 3), 1, 2), frames));
    }
    problems.extend(of_ltx2(storage));
    problems
}

/// Makes the problems of LTX-2: changes of time alone, first frames that come twice, and shortcuts
/// whose copies are apart.
fn of_ltx2(storage: Storage) -> Vec<Problem> {
    let mut problems = Vec::new();
    for (channels, times, side) in [((32, 64), 2, 1), ((8, 16), 2, 2), ((6, 24), 2, 2)] {
        let form = means([storage; 2], false, channels, times, side);
        problems.push(Form { params: RegroupParams { repeats_first: 1, ..form.params }, ..form }.problem());
    }
    for (channels, times, side) in [((32, 32), 2, 1), ((64, 32), 2, 2), ((24, 12), 1, 2)] {
        let form = copies([storage; 2], false, channels, times, side);
        problems.push(in_time(Form { params: RegroupParams { tiled: 1, ..form.params }, ..form }, 2));
    }
    problems
}

/// Changes a problem to one of a later part, with `frames` frames of the smaller tensor.
fn in_time(form: Form, frames: u32) -> Problem {
    let times = form.params.places / form.params.side.pow(2);
    let (y, x) = if form.copies { (frames * times, frames) } else { (frames, frames * times) };
    Form { params: RegroupParams { missing: 0, ..of_frames(form.params, y, x) }, ..form }.problem()
}

/// Changes a problem to one of `frames` frames whose columns come before rows.
fn in_columns(form: Form, frames: u32) -> Problem {
    let params = RegroupParams { column_step: form.params.side, ..of_frames(form.params, frames, frames) };
    Form { params, ..form }.problem()
}

fn of_frames(params: RegroupParams, frames: u32, x_frames: u32) -> RegroupParams {
    RegroupParams { frames, x_frames, y_row: params.width * frames * params.channels4, ..params }
}

/// Makes a problem with means of an image, with these storages of x and y.
fn means(storages: [Storage; 2], by_place: bool, (from, to): (u32, u32), frames: u32, side: u32) -> Form {
    let (width, height) = (7, 3);
    let places = frames * side * side;
    let x_width = width * side + (side - 1);
    let params = params((width, height), (x_width, from, to), (side, places, from * places / to));
    // Half of them add to what is there.
    let sum = to % 8 == 0 || side == 1 && to == 4;
    Form { storages, copies: false, by_place, sum, x_pixels: x_width * height * side, params }
}

/// Makes a problem with copies of an image, with these storages of x and y.
fn copies(storages: [Storage; 2], by_place: bool, (from, to): (u32, u32), frames: u32, side: u32) -> Form {
    let (x_width, x_height) = (5, 3);
    let places = frames * side * side;
    let params = params((x_width * side, x_height * side), (x_width, from, to), (side, places, to * places / from));
    Form { storages, copies: true, by_place, sum: to % 8 == 0, x_pixels: x_width * x_height, params }
}

/// Makes a problem that adds to every second row.
fn every_second_row(storage: Storage) -> Problem {
    let plain = params((5, 3), (5, 24, 24), (1, 1, 1));
    let params = RegroupParams { y_row: plain.y_row * 2, ..plain };
    Form { storages: [storage; 2], copies: true, by_place: false, sum: true, x_pixels: 15, params }.problem()
}

/// Makes a problem with a `ReLU` of numbers that are not finite, which must stay.
fn not_finite(storage: Storage) -> Problem {
    let form = means([storage; 2], false, (12, 12), 1, 1);
    let mut x = noise(1, (form.params.x_offset + form.x_pixels * form.params.x_channels4) * 4, 1.0);
    for (index, value) in [f32::NAN, f32::NEG_INFINITY, f32::INFINITY].into_iter().enumerate() {
        x[form.params.x_offset as usize * 4 + index] = value;
    }
    let problem = form.problem();
    let y = problem.bindings[1].clone().map(|data| Data { elements: Elements::Exact(storage), ..data });
    let name = format!("{} with NaN", problem.name);
    Problem { name, bindings: vec![numbers(storage, &x), y], ..problem }
}

fn params(
    (width, height): (u32, u32),
    (x_width, from, to): (u32, u32, u32),
    (side, places, count): (u32, u32, u32),
) -> RegroupParams {
    RegroupParams {
        pixels: width * height,
        width,
        frames: 1,
        channels: to,
        channels4: to.div_ceil(4),
        x_width,
        x_frames: 1,
        x_channels4: from.div_ceil(4),
        x_offset: 3,
        y_offset: 2,
        y_row: width * to.div_ceil(4),
        side,
        column_step: 1,
        places,
        missing: places / (side * side) - 1,
        repeats_first: 0,
        tiled: 0,
        count,
        scale: 0.5,
    }
}

/// A problem in the making.
struct Form {
    storages: [Storage; 2],
    copies: bool,
    by_place: bool,
    sum: bool,
    /// Pixels of x, each with all frames.
    x_pixels: u32,
    params: RegroupParams,
}

impl Form {
    fn problem(self) -> Problem {
        let Self { storages: [input, output], copies, by_place, sum, x_pixels, params } = self;
        let relu = !copies && params.side == 1;
        let elements = params.y_offset + params.pixels / params.width * params.y_row;
        let y = if sum { random(2, output, elements, 1.0) } else { room(output, elements) };
        let flags = format!("copies {copies} by_place {by_place} relu {relu} sum {sum}");
        let x = params.x_offset + x_pixels * params.x_frames * params.x_channels4;
        Problem {
            name: format!("regroup {flags} {params:?} {input:?} to {output:?}"),
            launch: Regrouping { input, output, copies, by_place, relu, sum, params }.launch(),
            bindings: vec![random(1, input, x, 1.0), y],
            tolerance: tolerance(output),
        }
    }
}
