//! Turns the scheduled chunks of fused stages into kernel launches on buffers that are not yet
//! placed.

use crate::error::Result;
use crate::limits::DeviceLimits;
use crate::ordered::Map;
use crate::plan::fused::{Fused, Stage};
use crate::plan::node::Node;
use crate::plan::ops::Lowering;
use crate::plan::schedule::Schedule;
use crate::plan::{Plan, PlanOptions, bounds};

/// Lowers the tasks of `schedule`. Later passes fill in slots, lives and memory.
///
/// # Errors
/// [`crate::Error::Input`] if there are more steps than `bounds` allows.
pub(super) fn lower(
    fused: &Fused,
    nodes: &[Node],
    schedule: &Schedule,
    limits: &DeviceLimits,
    options: &PlanOptions,
) -> Result<Plan> {
    let kept = last_reads(fused, nodes, schedule);
    let mut lowering = Lowering::new(fused, nodes, schedule.tasks.len(), limits, options);
    for pass in &schedule.passes {
        lowering.begin_pass(&schedule.stages(pass, nodes.len()));
        for index in pass.tasks.clone() {
            let task = schedule.tasks[index];
            lowering.task(task, task.stage == pass.goal);
            for (stage, chunk) in kept.get(&index).into_iter().flatten() {
                lowering.keep(*stage, *chunk);
            }
            if lowering.is_full() {
                return Err(bounds::too_many_steps());
            }
        }
        lowering.finish_goal(pass.goal);
    }
    Ok(lowering.into_plan())
}

/// Returns, for each task, the pairs of stage and input chunk for which this task is the last
/// read. Only stages that keep frames of their input count. A window keeps its own frames: its
/// last tasks for its own chunks count.
fn last_reads(fused: &Fused, nodes: &[Node], schedule: &Schedule) -> Map<usize, Vec<(usize, usize)>> {
    let keeps = |stage: usize| !fused.stages[stage].keeps().is_empty();
    let mut last = Map::new();
    for (index, task) in schedule.tasks.iter().enumerate().filter(|(_, task)| keeps(task.stage)) {
        let chunks: Vec<usize> = match fused.stages[task.stage] {
            Stage::Window(_) => vec![task.chunk],
            _ => nodes[task.stage].reads[0].chunks(task.chunk).collect(),
        };
        for chunk in chunks {
            last.insert((task.stage, chunk), index);
        }
    }
    let mut reads: Map<usize, Vec<(usize, usize)>> = Map::new();
    for (read, index) in last {
        reads.or_insert(index, Vec::new()).push(read);
    }
    reads
}
