//! The least time of a schedule, or a little more, before it is lowered. Only the first chunks of
//! each stage are lowered, because the others take as long.

use crate::limits::DeviceLimits;
use crate::plan::PlanOptions;
use crate::plan::bounds::WorkLimit;
use crate::plan::fused::Fused;
use crate::plan::node::Node;
use crate::plan::ops::Lowering;
use crate::plan::schedule::ChunkTask;

/// A lower bound on the seconds of the schedules of some nodes.
pub(super) struct Least<'a> {
    nodes: &'a [Node],
    /// Least seconds of a chunk of each stage.
    chunks: Vec<f64>,
}

impl<'a> Least<'a> {
    /// Lowers the first chunks of `nodes`.
    pub(super) fn new(
        fused: &Fused,
        nodes: &'a [Node],
        limits: &DeviceLimits,
        options: &PlanOptions,
        work_limit: &mut WorkLimit,
    ) -> Self {
        let firsts = firsts(nodes);
        let mut lowering = Lowering::new(fused, nodes, firsts.iter().sum(), limits, options);
        let mut chunks = Vec::with_capacity(nodes.len());
        for (stage, node) in nodes.iter().enumerate() {
            lowering.begin_pass(&[stage]);
            // A chunk after the first uses the filters that the first one transformed.
            let mut least = f64::INFINITY;
            for chunk in 0..firsts[stage] {
                let start = lowering.plan().steps.len();
                lowering.task(ChunkTask { stage, chunk }, node.barrier);
                least = least.min(lowering.plan().seconds_from(start));
            }
            lowering.finish_goal(stage);
            chunks.push(least);
        }
        work_limit.count_steps(lowering.plan().steps.len());
        Self { nodes, chunks }
    }

    /// Returns the seconds that `tasks` take at least.
    pub(super) fn seconds(&self, tasks: &[ChunkTask]) -> f64 {
        // The last chunk may have fewer rows.
        let is_full = |task: &ChunkTask| self.nodes[task.stage].partition.is_full(task.chunk);
        tasks.iter().filter(|task| task.chunk == 0 || is_full(task)).map(|task| self.chunks[task.stage]).sum()
    }
}

/// Returns the number of each stage's first chunks that the first two chunks of any stage need.
fn firsts(nodes: &[Node]) -> Vec<usize> {
    let mut firsts: Vec<usize> = nodes.iter().map(|node| node.partition.count().min(2)).collect();
    for (stage, node) in nodes.iter().enumerate().rev() {
        let count = firsts[stage];
        for read in &node.reads {
            let end = read.spans[..count].iter().map(|span| span.end).max().unwrap_or_default();
            firsts[read.stage] = firsts[read.stage].max(end.min(read.count));
        }
        if let Some(replaced) = node.replaces {
            firsts[replaced] = firsts[replaced].max(count);
        }
    }
    firsts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::config::{Family, LatentSpace};
    use crate::model::networks::decoder;
    use crate::plan::nodes::nodes;
    use crate::plan::schedule::{RetainedChunks, Schedule};
    use crate::plan::{Output, bounds, fuse, lower};
    use crate::tensor::{Bytes, Size, Storage};

    #[test]
    fn a_lowered_schedule_takes_no_less_and_little_more() {
        for name in ["sd15", "taesd", "wan21"] {
            let config = Family::find(name).expect("a published one").config();
            let graph = decoder(&config, Size { width: 64, height: 64 }, LatentSpace::Vae);
            let (fused, limits) = (fuse::fuse(&graph, 1.0), DeviceLimits::webgpu_default());
            let options = PlanOptions { chunk_limit: Bytes(1 << 20), ..PlanOptions::new(Storage::F16, Output::Rgba8) };
            let nodes = nodes(&fused, &limits, &options).expect("small enough");
            let schedule = Schedule::new(&nodes, &RetainedChunks::whole(&nodes), bounds::MOST_LOOKS);
            let schedule = schedule.expect("small enough");
            let plan = lower::lower(&fused, &nodes, &schedule, &limits, &options).expect("small enough");
            let least = Least::new(&fused, &nodes, &limits, &options, &mut WorkLimit(u64::MAX));
            let share = least.seconds(&schedule.tasks) / plan.predicted_seconds();
            assert!((0.7..=1.0).contains(&share), "{name}: {share}");
        }
    }
}
