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
