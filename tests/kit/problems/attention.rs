//! Problems of the streaming softmax, first block and later ones, and of the division at its end.

use wgvae::Storage;
use wgvae::kernels::attention::{FinishParams, SoftmaxParams, finish, softmax};

use super::{Problem, STORAGES, noise, numbers, random, room, tolerance};

pub(super) fn problems() -> Vec<Problem> {
    let mut problems = Vec::new();
    for storage in STORAGES {
        for (queries, keys) in [(5, 256), (3, 1), (17, 333), (1, 7)] {
            problems.push(softmax_problem(storage, queries, keys, true));
            problems.push(softmax_problem(storage, queries, keys, false));
        }
        // A compiler may leave out the rounding of a driver's own halves.
        if storage != Storage::F16 {
            problems.push(rounded_problem(storage));
        }
        for (queries, channels4) in [(16, 128), (7, 3), (1, 1)] {
            problems.push(finish_problem(storage, queries, channels4));
        }
    }
    problems
}

/// Makes a problem whose rows are longer than its keys, because the last block of keys is shorter
/// than the others.
fn softmax_problem(storage: Storage, queries: u32, keys: u32, first: bool) -> Problem {
    let row = keys.div_ceil(4) + 2;
    let params = SoftmaxParams { keys, row, scale: 0.125, first: u32::from(first) };
    // Maximum and sum so far. These are two floats per query, so an odd number of queries needs
    // padding to whole vec4.
    let state: Vec<f32> = noise(2, queries * 2, 1.0).iter().map(|value| value.abs() * 5.0 + 1.0).collect();
    Problem {
        name: format!("attention_softmax {queries} queries {keys} keys first {first} {storage:?}"),
        launch: softmax(storage, queries, params),
        bindings: vec![
            random(1, Storage::F32, queries * row, 60.0),
            room(storage, queries * row),
            numbers(Storage::F32, &state),
            numbers(Storage::F32, &vec![f32::NAN; queries as usize]),
        ],
        tolerance: tolerance(storage),
    }
}

/// Makes a problem whose probabilities all round by nearly half a place of a half, so that a sum of
/// the probabilities before rounding is outside the tolerance.
fn rounded_problem(storage: Storage) -> Problem {
    let (queries, keys, place) = (3, 256, 1.0 / 2048.0);
    let probability = 1500.45 * place;
    let params = SoftmaxParams { keys, row: keys / 4, scale: 1.0, first: 0 };
    let state = [-f32::ln(probability), 1.0].repeat(4);
    Problem {
        name: format!("attention_softmax of rounded probabilities {storage:?}"),
        launch: softmax(storage, queries, params),
        bindings: vec![
            numbers(Storage::F32, &vec![0.0; (queries * keys) as usize]),
            room(storage, queries * keys / 4),
            numbers(Storage::F32, &state),
            numbers(Storage::F32, &[f32::NAN; 3]),
        ],
        tolerance: tolerance(Storage::F32),
    }
}

fn finish_problem(storage: Storage, queries: u32, channels4: u32) -> Problem {
    let params = FinishParams { queries, channels4, y_offset: 2 };
    let state: Vec<f32> = noise(2, queries * 2, 1.0).iter().map(|value| value.abs() * 50.0 + 1.0).collect();
    Problem {
        name: format!("attention_finish {queries} queries c{} {storage:?}", channels4 * 4),
        launch: finish(storage, params),
        bindings: vec![
            random(1, Storage::F32, queries * channels4, 30.0),
            numbers(Storage::F32, &state),
            room(storage, 2 + queries * channels4),
        ],
        tolerance: tolerance(storage),
    }
}
