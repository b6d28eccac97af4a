//! Latents in, image out.

use wgvae::Storage;
use wgvae::kernels::edges::{ImageOutParams, LatentsInParams, image_out, latents_in};

use super::{Data, Elements, Problem, STORAGES, noise, numbers, random, room, tolerance};

pub(super) fn problems() -> Vec<Problem> {
    let mut problems = Vec::new();
    for storage in STORAGES {
        for (pixels, channels) in [(64, 4), (55, 16), (7, 3), (1, 1)] {
            problems.push(latents_problem(storage, pixels, channels));
        }
    }
    for pixels in [1, 77, 512] {
        problems.extend([false, true].map(|raw| image_problem(raw, pixels)));
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

fn image_problem(raw: bool, pixels: u32) -> Problem {
    let params = ImageOutParams { pixels, x_offset: 6, y_offset: 1, plane: pixels + 1 };
    let elements = if raw { Elements::Numbers(Storage::F32) } else { Elements::Levels };
    let bytes = if raw { (pixels + 1) * 12 } else { (pixels + 1) * 4 };
    Problem {
        name: format!("image_out {pixels} pixels raw {raw}"),
        launch: image_out(raw, params),
        bindings: vec![
            random(1, Storage::F32, 6 + pixels, 1.5),
            Some(Data { elements, bytes: vec![0xff; bytes as usize] }),
        ],
        tolerance: tolerance(Storage::F32),
    }
}
