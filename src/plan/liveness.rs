//! Fills in the first and last step that uses each buffer. Decides nothing.

use arrayvec::ArrayVec;

use crate::plan::{Action, BufferId, Plan, Resource};

/// Sets `live` of every buffer of `plan`.
///
/// # Panics
/// Panics if a buffer is never used.
pub fn liveness(plan: &mut Plan) {
    let mut live = vec![None; plan.buffers.len()];
    let mut touch = |buffer: BufferId, step: usize| {
        let (first, last) = live[buffer.0].unwrap_or((step, step));
        live[buffer.0] = Some((step.min(first), step.max(last)));
    };
    for (index, step) in plan.steps.iter().enumerate() {
        for buffer in used(&step.action) {
            touch(buffer, index);
        }
    }
    for (buffer, live) in plan.buffers.iter_mut().zip(live) {
        let (first, last) = live.unwrap_or_else(|| panic!("buffer {:?} is never used", buffer.name));
        buffer.live = first..last + 1;
    }
}

/// Returns the buffers that an action reads or writes.
pub fn used(action: &Action) -> ArrayVec<BufferId, 8> {
    match action {
        Action::Dispatch { bindings, .. } => bindings
            .iter()
            .filter_map(|binding| match binding {
                Resource::Buffer(buffer) => Some(*buffer),
                Resource::Weight(_) | Resource::Unused => None,
            })
            .collect(),
        Action::Copy { from, to, .. } => [from.0, to.0].into_iter().collect(),
        Action::Fetch { to: buffer, .. }
        | Action::Park { from: buffer, .. }
        | Action::Recall { to: buffer, .. }
        | Action::Keep { from: buffer, .. }
        | Action::Output { from: buffer, .. } => [*buffer].into_iter().collect(),
    }
}
