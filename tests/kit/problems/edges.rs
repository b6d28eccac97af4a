//! Problems of the edges: planes in, planes and images out.

use wgvae::Storage;
use wgvae::config::Packing;
use wgvae::internals::NOT_FINITE;
use wgvae::kernels::edges::{
    CHECK_WORDS, ImageCheckParams, ImageOutParams, PlanesInParams, PlanesOutParams, image_check, image_out, planes_in,
    planes_out,
};

use super::{Data, Elements, Problem, STORAGES, noise, numbers, room, tolerance};

pub(super) fn problems() -> Vec<Problem> {
    let mut problems = Vec::new();
    for storage in STORAGES {
        for (width, height, channels) in [(16, 4, 4), (11, 5, 16), (7, 1, 3), (1, 1, 1)] {
            for (patch, packing, squash) in [
                (1, Packing::ByChannel, false),
                (1, Packing::ByChannel, true),
                (2, Packing::ByChannel, false),
                (2, Packing::ByPlace, false),
                (2, Packing::Unpacked, false),
            ] {
                let shape = (width * patch, height * patch, channels);
                problems.push(planes_in_problem(storage, shape, 1, (patch, packing), squash));
            }
        }
        for (frames, shape, patch) in [(3, (11, 5, 16), 1), (4, (7, 1, 3), 1), (3, (10, 6, 3), 2)] {
            problems.push(planes_in_problem(storage, shape, frames, (patch, Packing::ByChannel), false));
        }
    }
    problems.extend(STORAGES.map(limits_problem));
    for (width, height, frames, stride) in [(1, 1, 1, 1), (11, 7, 1, 16), (64, 8, 1, 64), (11, 7, 3, 16), (5, 1, 4, 5)]
    {
        for (bgra, alpha) in [(false, false), (true, false), (false, true), (true, true)] {
            problems.push(image_problem((bgra, alpha), (width, height, frames), stride));
        }
    }
    for (pixels, frames, channels) in [(1, 1, 1), (100, 1, 3), (37, 1, 32), (100, 4, 3), (37, 3, 32)] {
        problems.extend([false, true].map(|clamp| planes_out_problem(pixels, frames, channels, clamp)));
    }
    for (width, height, bad) in [(64, 4, None), (100, 90, None), (100, 90, Some((99, 89))), (5, 3, Some((0, 0)))] {
        problems.push(check_problem(width, height, bad));
    }
    problems
}

fn planes_in_problem(
    storage: Storage,
    (width, height, channels): (u32, u32, u32),
    frames: u32,
    (patch, packing): (u32, Packing),
    squash: bool,
) -> Problem {
    let (pixels, channels4, planes) = (width * height, channels.div_ceil(4), channels * patch * patch);
    let held = if packing == Packing::Unpacked { 1 } else { patch };
    let (plane, x_width) = (pixels / held / held + 5, width / held);
    let (channel_step, place_step) = if packing == Packing::ByPlace { (1, channels) } else { (patch * patch, 1) };
    let params =
        PlanesInParams { pixels, width, channels, channels4, plane, x_width, frames, channel_step, place_step };
    Problem {
        name: format!(
            "planes_in {width}x{height} c{channels} frames {frames} patch {patch} {packing:?} squash {squash} {storage:?}"
        ),
        launch: planes_in(storage, patch, packing, squash, params),
        bindings: vec![
            numbers(Storage::F32, &noise(1, frames * channels * held * held * plane, 6.0)),
            numbers(Storage::F32, &noise(2, planes * 2, 2.0)),
            room(storage, pixels * frames * channels4),
        ],
        tolerance: tolerance(storage),
    }
}

/// Makes a problem with values beyond -1..1, and some that are not finite.
fn planes_out_problem(pixels: u32, frames: u32, channels: u32, clamp: bool) -> Problem {
    let channels4 = channels.div_ceil(4);
    let params = PlanesOutParams { pixels, channels, channels4, frames, factor: 2.0, offset: -1.0 };
    let mut x = noise(1, pixels * frames * channels4 * 4, 1.5);
    let middle = x.len() / 2;
    (x[0], x[middle]) = (f32::INFINITY, f32::NAN);
    let bytes = (pixels * frames * channels * 4) as usize;
    Problem {
        name: format!("planes_out {pixels} pixels c{channels} frames {frames} clamp {clamp}"),
        launch: planes_out(clamp, params),
        bindings: vec![
            numbers(Storage::F32, &x),
            Some(Data { elements: Elements::Exact(Storage::F32), bytes: vec![0xff; bytes] }),
        ],
        tolerance: tolerance(Storage::F32),
    }
}

/// Makes a problem with numbers at the ends of a storage's range: larger ones become infinite, and
/// NaN stays NaN.
fn limits_problem(storage: Storage) -> Problem {
    // WGSL lets a driver choose the direction in which it rounds to its own halves. So only packed
    // halves, which the kernel rounds itself, are tested between the halves.
    let between = if storage == Storage::PackedF16 { middles_of_halves() } else { Vec::new() };
    let beyond = [65_536.0, 1e6, 1e20, f32::MAX, f32::INFINITY];
    let magnitudes = [&[0.0, 1.0, 2.0_f32.powi(-14), 65_472.0, 65_504.0][..], &between, &beyond].concat();
    let mut values: Vec<f32> = magnitudes.iter().flat_map(|value| [*value, -value]).collect();
    values.push(f32::NAN);
    values.resize(values.len().next_multiple_of(4), 0.5);
    // One pixel, with one number in each of its channels.
    let channels = u32::try_from(values.len()).unwrap();
    let params = PlanesInParams {
        pixels: 1,
        width: 1,
        channels,
        channels4: channels / 4,
        plane: 1,
        x_width: 1,
        frames: 1,
        channel_step: 1,
        place_step: 1,
    };
    let identity = [vec![1.0; values.len()], vec![0.0; values.len()]].concat();
    let bytes = room(storage, channels / 4).unwrap().bytes;
    Problem {
        name: format!("planes_in at the ends of the range {storage:?}"),
        launch: planes_in(storage, 1, Packing::ByChannel, false, params),
        bindings: vec![
            numbers(Storage::F32, &values),
            numbers(Storage::F32, &identity),
            Some(Data { elements: Elements::Exact(storage), bytes }),
        ],
        tolerance: tolerance(storage),
    }
}

/// Returns middles between neighbouring halves, from subnormal ones to the largest and 65536, each
/// with the numbers before and after it. IEEE rounds a middle to the half that is even.
fn middles_of_halves() -> Vec<f32> {
    let last_places = [0, 1, 2, 511, 1022, 1023, 1024, 1025, 2047, 15_360, 15_361, 20_479, 31_742, 31_743_u16];
    let middle = |bits: u16| {
        let [low, high] = [bits, bits + 1].map(|bits| half::f16::from_bits(bits).to_f32().min(65_536.0));
        f32::midpoint(low, high)
    };
    last_places.map(middle).into_iter().flat_map(|middle| [middle.next_down(), middle, middle.next_up()]).collect()
}

/// Makes a problem with values beyond -1..1, and if there is room with one that is not finite and
/// one whose levels are those of [`NOT_FINITE`].
fn image_problem((bgra, alpha): (bool, bool), (width, height, frames): (u32, u32, u32), stride: u32) -> Problem {
    let pixels = width * height;
    let (factor, offset) = (1.5, 0.125);
    let params = ImageOutParams { pixels, width, stride, frames, factor, offset };
    let mut x = noise(1, pixels * frames * 4, 1.5);
    if let [_, _, _, _, second @ .., _, _, infinite, _] = x.as_mut_slice() {
        *infinite = f32::NEG_INFINITY;
        let level = |level: u8| (f32::from(level) / 127.5 - 1.0 - offset) / factor;
        second[..4].copy_from_slice(&NOT_FINITE.map(level));
    }
    let bytes = vec![0xff; (stride * frames * height * 4) as usize];
    Problem {
        name: format!("image_out {width}x{height} frames {frames} stride {stride} bgra {bgra} alpha {alpha}"),
        launch: image_out(bgra, alpha, params),
        bindings: vec![numbers(Storage::F32, &x), Some(Data { elements: Elements::Levels, bytes })],
        tolerance: tolerance(Storage::F32),
    }
}

/// Makes a problem with a grey picture, except for the pixel `bad` (column and row) and one below
/// it, and a pixel without opacity.
fn check_problem(width: u32, height: u32, bad: Option<(u32, u32)>) -> Problem {
    let stride = width.next_multiple_of(64);
    let mut bytes = vec![0x80; (stride * height + CHECK_WORDS) as usize * 4];
    for (column, row) in bad.into_iter().flat_map(|(column, row)| [(column, row), (column, (row + 1).min(height - 1))])
    {
        bytes[(row * stride + column) as usize * 4..][..4].copy_from_slice(&NOT_FINITE);
    }
    bytes[7] = 0;
    let params = ImageCheckParams { pixels: width * height, width, stride, check: stride * height };
    Problem {
        name: format!("image_check {width}x{height} bad {bad:?}"),
        launch: image_check(params),
        bindings: vec![Some(Data { elements: Elements::Levels, bytes })],
        tolerance: tolerance(Storage::F32),
    }
}
