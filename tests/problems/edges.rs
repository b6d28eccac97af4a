//! Latents in, image out.

use wgvae::Storage;
use wgvae::kernels::edges::{
    CHECK_WORDS, Colors, ImageCheckParams, ImageOutParams, LatentsInParams, image_check, image_out, latents_in,
};

use super::{Data, Elements, Problem, STORAGES, noise, numbers, random, room, tolerance};

pub(super) fn problems() -> Vec<Problem> {
    let mut problems = Vec::new();
    for storage in STORAGES {
        for (pixels, channels) in [(64, 4), (55, 16), (7, 3), (1, 1)] {
            problems.push(latents_problem(storage, pixels, channels));
        }
    }
    problems.extend(STORAGES.map(limits_problem));
    for (width, height, stride) in [(1, 1, 1), (11, 7, 16), (64, 8, 64)] {
        problems.extend(
            [Colors::Raw, Colors::Rgba, Colors::Bgra].map(|colors| image_problem(colors, width, height, stride)),
        );
    }
    for (width, height, bad) in [(64, 4, None), (100, 90, None), (100, 90, Some((99, 89))), (5, 3, Some((0, 0)))] {
        problems.push(check_problem(width, height, bad));
    }
    problems
}

fn latents_problem(storage: Storage, pixels: u32, channels: u32) -> Problem {
    let (plane, channels4) = (pixels + 5, channels.div_ceil(4));
    let params = LatentsInParams { pixels, channels, channels4, plane, x_offset: 4, y_offset: 3 };
    Problem {
        name: format!("latents_in {pixels} pixels c{channels} {storage:?}"),
        launch: latents_in(storage, params),
        bindings: vec![
            numbers(Storage::F32, &noise(1, channels * plane, 3.0)),
            numbers(Storage::F32, &noise(2, channels * 2, 2.0)),
            room(storage, 3 + pixels * channels4),
        ],
        tolerance: tolerance(storage),
    }
}

/// Numbers at the ends of a storage's range: what is beyond becomes infinite, and what is none stays none.
fn limits_problem(storage: Storage) -> Problem {
    // From 65520 on, IEEE rounds to infinity; below, to the largest half. A driver that truncates makes 65504 of what lies between that and 65536, so only
    // packed halves, which are rounded here, are tried there.
    let between: &[f32] = if storage == Storage::PackedF16 { &[65_519.996, 65_520.0, 65_535.996] } else { &[] };
    let beyond = [65_536.0, 1e6, 1e20, f32::MAX, f32::INFINITY];
    let magnitudes = [&[0.0, 1.0, 2.0_f32.powi(-14), 65_472.0, 65_504.0][..], between, &beyond].concat();
    let mut values: Vec<f32> = magnitudes.iter().flat_map(|value| [*value, -value]).collect();
    values.push(f32::NAN);
    values.resize(values.len().next_multiple_of(4), 0.5);
    // One pixel, each of its channels a number.
    let channels = u32::try_from(values.len()).unwrap();
    let params = LatentsInParams { pixels: 1, channels, channels4: channels / 4, plane: 1, x_offset: 0, y_offset: 0 };
    let identity = [vec![1.0; values.len()], vec![0.0; values.len()]].concat();
    let bytes = room(storage, channels / 4).unwrap().bytes;
    Problem {
        name: format!("latents_in at the ends of the range {storage:?}"),
        launch: latents_in(storage, params),
        bindings: vec![
            numbers(Storage::F32, &values),
            numbers(Storage::F32, &identity),
            Some(Data { elements: Elements::Exact(storage), bytes }),
        ],
        tolerance: tolerance(storage),
    }
}

fn image_problem(colors: Colors, width: u32, height: u32, stride: u32) -> Problem {
    let (pixels, raw) = (width * height, colors == Colors::Raw);
    let params = ImageOutParams { pixels, width, stride, plane: pixels + 1 };
    let elements = if raw { Elements::Numbers(Storage::F32) } else { Elements::Levels };
    let bytes = if raw { (pixels + 1) * 12 } else { stride * height * 4 };
    Problem {
        name: format!("image_out {width}x{height} stride {stride} {colors:?}"),
        launch: image_out(colors, params),
        bindings: vec![
            random(1, Storage::F32, pixels, 1.5),
            Some(Data { elements, bytes: vec![0xff; bytes as usize] }),
        ],
        tolerance: tolerance(Storage::F32),
    }
}

/// A picture that is grey, but for the pixel `bad` in column and row, and one below it.
fn check_problem(width: u32, height: u32, bad: Option<(u32, u32)>) -> Problem {
    let stride = width.next_multiple_of(64);
    let mut bytes = vec![0x80; (stride * height + CHECK_WORDS) as usize * 4];
    for (column, row) in bad.into_iter().flat_map(|(column, row)| [(column, row), (column, (row + 1).min(height - 1))])
    {
        bytes[(row * stride + column) as usize * 4 + 3] = 0;
    }
    let params = ImageCheckParams { pixels: width * height, width, stride, check: stride * height };
    Problem {
        name: format!("image_check {width}x{height} bad {bad:?}"),
        launch: image_check(params),
        bindings: vec![Some(Data { elements: Elements::Levels, bytes })],
        tolerance: tolerance(Storage::F32),
    }
}
