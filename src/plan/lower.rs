//! Turns the scheduled chunks of fused stages into kernel launches on buffers that are not yet placed.

use crate::error::Result;
use crate::limits::DeviceLimits;
use crate::plan::fused::Fused;
use crate::plan::node::Node;
use crate::plan::ops::Lowering;
use crate::plan::schedule::Schedule;
use crate::plan::{Plan, PlanOptions, bounds};

/// Lowers the tasks of `schedule`. Slots, lifetimes and memory are filled in by later passes.
///
/// # Errors
/// [`crate::Error::Input`] when there would be too many steps.
pub(super) fn lower(
    fused: &Fused,
    nodes: &[Node],
    schedule: &Schedule,
    limits: &DeviceLimits,
    options: &PlanOptions,
) -> Result<Plan> {
    let mut lowering = Lowering::new(fused, nodes, limits, options);
    for pass in &schedule.passes {
        lowering.begin_pass(&schedule.stages(pass, nodes.len()));
        for task in &schedule.tasks[pass.tasks.clone()] {
            lowering.task(*task, task.stage == pass.goal);
            if lowering.is_full() {
                return Err(bounds::too_many_steps());
            }
        }
        lowering.finish_norm(pass.goal);
    }
    Ok(lowering.into_plan())
}
