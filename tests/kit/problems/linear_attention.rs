//! Problems of linear attention: sums over runs of pixels, their sum, and their use.

use wgvae::Storage;
use wgvae::kernels::linear_attention::{ApplyParams, FinishParams, SumsParams, apply, elements, finish, sums};

use super::{Problem, STORAGES, noise, numbers, random, room, tolerance};

/// Pixels, heads and channels of a head / 4: of DC-AE, and of toy models.
const SHAPES: [(u32, u32, u32); 5] = [(300, 16, 8), (64, 3, 8), (37, 5, 2), (1, 1, 1), (130, 2, 4)];

pub(super) fn problems() -> Vec<Problem> {
    let mut problems = Vec::new();
    for shape in SHAPES {
        for storage in STORAGES {
            problems.push(sums_problem(storage, shape));
            problems.push(apply_problem(storage, shape));
        }
        problems.push(finish_problem(shape));
    }
    problems
}

fn sums_problem(storage: Storage, (pixels, heads, head4): (u32, u32, u32)) -> Problem {
    let params = SumsParams { pixels, run: 64, channels4: heads * 3 * head4, sums_offset: 1 };
    let runs = pixels.div_ceil(64);
    Problem {
        name: format!("linear_attention_sums {pixels} pixels {heads} heads of {} {storage:?}", head4 * 4),
        launch: sums(storage, head4, params),
        bindings: vec![
            random(1, storage, pixels * heads * 3 * head4, 2.0),
            room(Storage::F32, (1 + runs) * elements(heads, head4)),
        ],
        tolerance: tolerance(Storage::F32),
    }
}

fn finish_problem((runs, heads, head4): (u32, u32, u32)) -> Problem {
    let elements = elements(heads, head4);
    Problem {
        name: format!("linear_attention_finish {runs} runs {heads} heads of {}", head4 * 4),
        launch: finish(FinishParams { runs, elements }),
        bindings: vec![random(1, Storage::F32, runs * elements, 1.0), room(Storage::F32, elements)],
        tolerance: tolerance(Storage::F32),
    }
}

/// Makes a problem whose result has four channels before those of the heads, and four after them.
fn apply_problem(storage: Storage, (pixels, heads, head4): (u32, u32, u32)) -> Problem {
    let y_channels4 = heads * head4 + 2;
    let params = ApplyParams { pixels, heads, x_offset: 2, y_offset: 1, y_channels4, eps: 0.1 };
    // Sums of keys are not negative.
    let mut table = noise(2, elements(heads, head4) * 4, 1.0);
    for (index, value) in table.iter_mut().enumerate() {
        let row = index / (head4 as usize * 4) % (head4 as usize * 4 + 1);
        *value = if row == head4 as usize * 4 { value.abs() } else { *value };
    }
    Problem {
        name: format!("linear_attention_apply {pixels} pixels {heads} heads of {} {storage:?}", head4 * 4),
        launch: apply(storage, head4, params),
        bindings: vec![
            random(1, storage, 2 + pixels * heads * 3 * head4, 2.0),
            numbers(Storage::F32, &table),
            room(storage, 1 + pixels * y_channels4),
        ],
        tolerance: tolerance(storage),
    }
}
