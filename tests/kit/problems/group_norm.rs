//! Problems of group norms: statistics (also with a mean far from zero), their merge, and the
//! application; and of norms of pixels.

use wgvae::Storage;
use wgvae::kernels::group_norm::{ApplyParams, FinishParams, StatsParams, apply, finish, stats};

use wgvae::kernels::pixel_norm::{PixelNorm, PixelNormParams};
use wgvae::model::graph::Activation;

use super::{Problem, STORAGES, noise, numbers, random, room, tolerance};

/// Pixels and channels / 4.
const SHAPES: [(u32, u32); 4] = [(256, 32), (91, 3), (1, 1), (64, 128)];

pub(super) fn problems() -> Vec<Problem> {
    let mut problems = Vec::new();
    for storage in STORAGES {
        for shape in SHAPES {
            problems.push(stats_problem(storage, shape, false));
            for activation in [None, Some(Activation::Silu), Some(Activation::Relu)] {
                problems.push(apply_problem(storage, shape, (1, 0), activation));
                for lanes in [1, 4] {
                    problems.push(pixel_problem(storage, shape, (1, 0), activation, lanes, Extras::default()));
                    let extras = Extras { beta: true, sum: activation.is_none() };
                    problems.push(pixel_problem(storage, shape, (1, 0), activation, lanes, extras));
                }
            }
        }
        problems.push(stats_problem(storage, (91, 3), true));
        for frames in [(3, 2), (4, 0), (1, 2)] {
            for shape in [(91, 3), (64, 8)] {
                problems.push(apply_problem(storage, shape, frames, Some(Activation::Silu)));
                for lanes in [1, 4] {
                    let silu = Some(Activation::Silu);
                    problems.push(pixel_problem(storage, shape, frames, silu, lanes, Extras::default()));
                }
            }
        }
    }
    for (runs, channels, groups) in [(7, 128, 32), (3, 18, 6), (1, 4, 4), (100, 512, 32), (5, 24, 2)] {
        problems.push(finish_problem(runs, 1, (channels, groups)));
    }
    for (runs, frames, channels, groups) in [(7, 4, 128, 32), (3, 3, 18, 6), (1, 3, 7, 7)] {
        problems.push(finish_problem(runs, frames, (channels, groups)));
    }
    problems
}

/// Makes a problem with a mean that is much larger than the deviation. If `nan`, the last number is
/// NaN, and so must be the moments of its run.
fn stats_problem(storage: Storage, (pixels, channels4): (u32, u32), nan: bool) -> Problem {
    let runs = pixels.div_ceil(64);
    let params = StatsParams { pixels, run: 64, runs, x_offset: 2, channels4, moments_offset: 1 };
    let mut x: Vec<f32> = noise(1, (2 + pixels * channels4) * 4, 1.0).iter().map(|value| value + 30.0).collect();
    if let Some(last) = x.last_mut().filter(|_| nan) {
        *last = f32::NAN;
    }
    Problem {
        name: format!(
            "group_norm_stats {pixels} pixels c{}{} {storage:?}",
            channels4 * 4,
            if nan { " with NaN" } else { "" }
        ),
        launch: stats(storage, params),
        bindings: vec![numbers(storage, &x), room(Storage::F32, (1 + runs) * channels4 * 3)],
        tolerance: tolerance(Storage::F32),
    }
}

/// Makes a problem of `frames` frames that follow `past` others in y.
fn apply_problem(
    storage: Storage,
    (pixels, frame4): (u32, u32),
    (frames, past): (u32, u32),
    activation: Option<Activation>,
) -> Problem {
    let channels4 = frames * frame4;
    let (y_offset, y_pixel4) = (past * frame4, (past + frames) * frame4);
    let params = ApplyParams { elements: pixels * channels4, channels4, x_offset: 3, y_offset, y_pixel4 };
    Problem {
        name: format!(
            "group_norm_apply {pixels} pixels c{} frames {frames} after {past} {activation:?} {storage:?}",
            frame4 * 4
        ),
        launch: apply(storage, activation, params),
        bindings: vec![
            random(1, storage, 3 + pixels * channels4, 4.0),
            random(2, Storage::F32, channels4 * 2, 1.0),
            room(storage, pixels * y_pixel4),
        ],
        tolerance: tolerance(storage),
    }
}

/// Summands of a norm of pixels.
#[derive(Clone, Copy, Default)]
struct Extras {
    /// Summands of the norm.
    beta: bool,
    /// The old value of y.
    sum: bool,
}

fn pixel_problem(
    storage: Storage,
    (pixels, channels4): (u32, u32),
    (frames, past): (u32, u32),
    activation: Option<Activation>,
    lanes: u32,
    Extras { beta, sum }: Extras,
) -> Problem {
    let (y_offset, y_pixel4) = (past * channels4, (past + frames) * channels4);
    let eps = if frames > 1 { 0.3 } else { 0.0 };
    let params =
        PixelNormParams { pixels, channels4, frames, x_offset: 3, y_offset, y_pixel4, root: 7.5, least: 1e-12, eps };
    Problem {
        name: format!(
            "pixel_norm_apply by {lanes}, {pixels} pixels c{} frames {frames} after {past} {activation:?}{}{} {storage:?}",
            channels4 * 4,
            if beta { " beta" } else { "" },
            if sum { " sum" } else { "" }
        ),
        launch: PixelNorm { storage, activation, lanes, has_beta: beta, sum, params }.launch(),
        bindings: vec![
            random(1, storage, 3 + pixels * frames * channels4, 4.0),
            random(2, Storage::F32, channels4, 1.0),
            if beta { random(3, Storage::F32, channels4, 1.0) } else { None },
            if sum { random(4, storage, pixels * y_pixel4, 2.0) } else { room(storage, pixels * y_pixel4) },
        ],
        tolerance: tolerance(storage),
    }
}

fn finish_problem(runs: u32, frames: u32, (channels, groups): (u32, u32)) -> Problem {
    let channels4 = channels.div_ceil(4);
    let channels_per_group = channels / groups;
    let params = FinishParams { runs, channels, channels4, channels_per_group, frames, eps: 1e-6 };
    let mut moments = noise(1, runs * frames * channels4 * 12, 1.0);
    for (index, value) in moments.iter_mut().enumerate() {
        match index % 12 {
            // Counts are whole numbers.
            0..4 => *value = (value.abs() * 60.0).round() + 1.0,
            4..8 => *value += 0.5,
            _ => *value = value.abs() * 20.0,
        }
    }
    Problem {
        name: format!("group_norm_finish {runs} runs c{channels} groups{groups} frames {frames}"),
        launch: finish(params),
        bindings: vec![
            numbers(Storage::F32, &moments),
            random(2, Storage::F32, channels4, 1.0),
            random(3, Storage::F32, channels4, 1.0),
            room(Storage::F32, frames * channels4 * 2),
        ],
        tolerance: tolerance(Storage::F32),
    }
}
