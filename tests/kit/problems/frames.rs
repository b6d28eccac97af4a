//! Problems of copied frames.

use wgvae::Storage;
use wgvae::kernels::frames::{CopyFramesParams, copy};

use super::{Data, Elements, Problem, STORAGES, room, tolerance};

pub(super) fn problems() -> Vec<Problem> {
    let mut problems = Vec::new();
    for storage in STORAGES {
        // Copied frames, first frame and count of the source, first frame and count of the target.
        for (frames, from, to) in [(2, (2, 4), (0, 6)), (2, (0, 2), (0, 2)), (1, (0, 1), (2, 3)), (4, (0, 4), (2, 6))] {
            for (pixels, channels4) in [(91, 3), (1, 1), (64, 32)] {
                problems.push(problem(storage, (pixels, channels4), frames, from, to));
            }
        }
    }
    problems
}

fn problem(
    storage: Storage,
    (pixels, channels4): (u32, u32),
    frames: u32,
    (x_first, x_frames): (u32, u32),
    (y_first, y_frames): (u32, u32),
) -> Problem {
    let params = CopyFramesParams {
        pixels,
        vec4s: frames * channels4,
        x_offset: x_first * channels4,
        x_pixel4: x_frames * channels4,
        y_offset: y_first * channels4,
        y_pixel4: y_frames * channels4,
    };
    // Any bits except subnormals and NaN, which drivers may change.
    let mut state = 1_u32;
    let mut bytes = room(storage, pixels * x_frames * channels4).unwrap().bytes;
    for half in bytes.chunks_exact_mut(2) {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let exponent = 1 + (state >> 27) % 30;
        let bits = (state >> 8 & 0x83ff) | exponent << 10;
        half.copy_from_slice(&bits.to_le_bytes()[..2]);
    }
    Problem {
        name: format!(
            "copy_frames {pixels} pixels c{} {frames} from {x_first} of {x_frames} to {y_first} of {y_frames} {storage:?}",
            channels4 * 4
        ),
        launch: copy(storage, params),
        bindings: vec![
            Some(Data { elements: Elements::Exact(storage), bytes }),
            Some(Data {
                elements: Elements::Exact(storage),
                bytes: room(storage, pixels * y_frames * channels4).unwrap().bytes,
            }),
        ],
        tolerance: tolerance(storage),
    }
}
