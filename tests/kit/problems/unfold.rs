//! Problems of the pixels that 3x3 filters with a stride read.

use wgvae::Storage;
use wgvae::kernels::unfold::{UnfoldParams, unfold};
use wgvae::model::graph::{Border, Window};

use super::{Data, Elements, Problem, STORAGES, random};

pub(super) fn problems() -> Vec<Problem> {
    let mut problems = Vec::new();
    for storage in STORAGES {
        for border in [Border::Around, Border::After] {
            for shape in [(16, 8, 8), (13, 7, 3), (2, 2, 1), (5, 2, 1)] {
                problems.push(problem(storage, Window::halving(border), shape, (1, 0)));
            }
            for frames in [(3, 0), (4, 2), (1, 1)] {
                problems.push(problem(storage, Window::halving(border), (13, 7, 3), frames));
            }
        }
    }
    problems
}

/// Makes a problem of the lower half of the output, from its second pixel on, where x lacks the
/// rows above. It has `frames` frames, which follow `frame0` others in y.
fn problem(
    storage: Storage,
    window: Window,
    (x_width, x_height, channels4): (u32, u32, u32),
    (frames, frame0): (u32, u32),
) -> Problem {
    let (width, height) = (window.output(x_width), window.output(x_height));
    let first_row = height / 2;
    let first = first_row * width + u32::from(width > 1);
    let pixels = width * height - first;
    let x_row0 = (first_row * window.stride).saturating_sub(window.before());
    let frames_y = frame0 + frames;
    let params = UnfoldParams { pixels, first, width, x_width, x_height, x_row0, channels4, frames, frames_y, frame0 };
    let bytes = usize::try_from(u64::from(pixels * frames_y * 9 * channels4) * storage.vec4_bytes()).unwrap();
    Problem {
        name: format!(
            "unfold w{x_width} h{x_height} c{} frames {frames} after {frame0} {:?} {storage:?}",
            channels4 * 4,
            window.border
        ),
        launch: unfold(storage, window, params),
        bindings: vec![
            random(1, storage, (x_height - x_row0) * x_width * frames * channels4, 1.0),
            Some(Data { elements: Elements::Exact(storage), bytes: vec![0xff; bytes] }),
        ],
        tolerance: super::tolerance(storage),
    }
}
