//! The first stage: turns rows from the host into a stored tensor.

use crate::error::Result;
use crate::kernels::edges::{PlanesInParams, planes_in};
use crate::kernels::weights::WeightLayout;
use crate::model::graph::{Shape, TensorId, Transform, Weight, WeightSlice};
use crate::plan::fused::Stage;
use crate::plan::node::{Node, Scratch, Shared};
use crate::plan::{Action, HostSource, InputRows, PlaneExtents, Resource};
use crate::tensor::Size;

use super::lowering::Lowering;
use super::sizing::Sizing;

/// Returns the node of the input stage.
pub(super) fn node(sizing: &Sizing<'_>, transform: &Transform, output: TensorId) -> Result<Node> {
    let shape = sizing.fused.shape(output);
    let held = transform.packing.held(transform.patch);
    let row_bytes = planes_bytes(shape, transform, held) / u64::from(held);
    let partition = sizing.cut(output, None, row_bytes)?;
    let planes = planes_bytes(shape, transform, partition.chunk(0).count());
    let scratch = Scratch::default().with(Shared::Planes, planes);
    Ok(Node { scratch, ..sizing.storing(output, partition, Vec::new()) })
}

/// Returns the bytes of the host's input, in f32, that `rows` rows of a tensor of `shape` are made
/// from.
fn planes_bytes(shape: Shape, transform: &Transform, rows: u32) -> u64 {
    let held = transform.packing.held(transform.patch);
    let channels = u64::from(shape.channels * held * held);
    u64::from(rows.div_ceil(held)) * u64::from(shape.width / held) * u64::from(shape.frames) * channels * 4
}

impl Lowering<'_> {
    /// Fetches and converts chunk `chunk` of the input.
    pub(super) fn input(&mut self, transform: &Transform, output: TensorId, chunk: usize) {
        let shape = self.fused.shape(output);
        let (patch, packing) = (transform.patch, transform.packing);
        let held = packing.held(patch);
        let (channel_step, place_step) = packing.steps(shape.channels, patch);
        let channels = u32::try_from(transform.factor.len()).unwrap_or(u32::MAX);
        let weight = Weight { name: "input.factor_offset".to_owned(), take: WeightSlice::Transform };
        let factors = self.weight(&weight, WeightLayout::Vector { channels: channels * 2 }, 1.0);
        self.plan.transform = [transform.factor.as_slice(), &transform.offset].concat();
        let input = self.input_index(PlaneExtents {
            size: Size { width: shape.width / held, height: shape.height / held },
            channels: shape.channels * held * held,
            frames: shape.frames,
            first: 0,
        });
        let planes = self.shared(Shared::Planes);
        let target = self.place(output, chunk);
        let (storage, own) = (self.output_of_stage().storage, self.rows(chunk));
        let rows = (own.start / held, own.end.div_ceil(held));
        self.step(Action::Fetch { from: HostSource::Input(InputRows { input, rows }), to: planes }, 0);
        let params = PlanesInParams {
            pixels: own.count() * shape.width,
            width: shape.width,
            channels: shape.channels,
            channels4: shape.channels4(),
            plane: (rows.1 - rows.0) * (shape.width / held),
            x_width: shape.width / held,
            frames: shape.frames,
            channel_step,
            place_step,
        };
        let launch = planes_in(storage, patch, packing, transform.squash, params);
        self.launch(launch, &[Resource::Buffer(planes), factors, Resource::Buffer(target)]);
    }

    /// Returns the index of the plan's input that the current stage reads. Inputs are in the order
    /// of their stages.
    fn input_index(&mut self, planes: PlaneExtents) -> usize {
        let before = self.fused.stages[..self.stage].iter();
        let index = before.filter(|stage| matches!(stage, Stage::Input { .. })).count();
        if self.plan.inputs.len() == index {
            self.plan.inputs.push(planes);
        }
        index
    }
}

#[cfg(test)]
mod tests {
    use crate::limits::DeviceLimits;
    use crate::model::graph::{Ending, Graph, Shape, Transform};
    use crate::plan::schedule::{RetainedChunks, Schedule};
    use crate::plan::{Action, Output, PlanOptions, fuse, lower, nodes};
    use crate::tensor::{Bytes, Storage};

    /// Rows of the input that are not kept are fetched again.
    #[test]
    fn an_input_that_is_read_again_is_fetched_again() {
        let mut graph = Graph::default();
        let shape = Shape::image(16, 8, 16);
        let latents = graph.input(shape, Transform::none(16));
        let x = graph.conv2d("conv_in", latents, 16, 3);
        let normed = graph.group_norm("norm", x, 4, 1e-6);
        let image = graph.conv2d("conv_out", normed, 3, 3);
        graph.output(image, Ending::NONE);
        let limits = DeviceLimits::webgpu_default();
        let options = PlanOptions { chunk_limit: Bytes(1 << 11), ..PlanOptions::new(Storage::F32, Output::Raw) };
        let fused = fuse::fuse(&graph, 1.0);
        let nodes = nodes::nodes(&fused, &limits, &options).expect("it fits");
        let schedule = Schedule::new(&nodes, &RetainedChunks(vec![0; nodes.len()]), u64::MAX).expect("without bounds");
        let plan = lower::lower(&fused, &nodes, &schedule, &limits, &options).expect("few steps");
        let fetched = plan.steps.iter().filter(|step| matches!(step.action, Action::Fetch { .. })).count();
        assert!(fetched > nodes[0].partition.count(), "fetched {fetched} times");
        assert_eq!(plan.inputs.len(), 1);
    }
}
