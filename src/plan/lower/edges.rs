//! Lowers the first and the last stage.

use crate::kernels::edges::{
    ImageCheckParams, ImageOutParams, PlanesInParams, PlanesOutParams, image_check, image_out, planes_in, planes_out,
};
use crate::kernels::weights::Layout;
use crate::model::graph::{Ending, Shape, Take, TensorId, Transform, Weight};
use crate::plan::fuse::Stage;
use crate::plan::{Action, CHECK_BYTES, ChannelOrder, HostSource, InputRows, Output, Planes, Resource};
use crate::tensor::Size;

use super::Lowering;

/// Bytes of the input that `rows` rows of a tensor of `shape` are made from.
pub(in crate::plan) fn planes_bytes(shape: Shape, transform: &Transform, rows: u32) -> u64 {
    let (patch, channels) = (transform.patch, transform.factor.len() as u64);
    u64::from(rows.div_ceil(patch)) * u64::from(shape.width / patch) * channels * 4
}

impl Lowering<'_> {
    pub(super) fn input(&mut self, transform: &Transform, output: TensorId, chunk: usize) {
        let shape = self.fused.shape(output);
        let (patch, channels) = (transform.patch, u32::try_from(transform.factor.len()).unwrap_or(u32::MAX));
        let weight = Weight { name: "input.factor_offset".to_owned(), take: Take::Transform };
        let factors = self.weight(&weight, Layout::Vector { channels: channels * 2 }, 1.0);
        self.plan.transform = [transform.factor.as_slice(), &transform.offset].concat();
        let input = self
            .input_index(Planes { size: Size { width: shape.width / patch, height: shape.height / patch }, channels });
        let bytes = self.pass.sizes.planes;
        let planes = self.pass.planes.unwrap_or_else(|| self.scratch("planes", bytes));
        self.pass.planes = Some(planes);
        let target = self.place(chunk);
        let stored = &self.stored[self.stage];
        let (storage, own) = (stored.storage, stored.partition.chunk(chunk));
        let rows = (own.start / patch, own.end.div_ceil(patch));
        self.step(Action::Fetch { from: HostSource::Input(InputRows { input, rows }), to: planes }, 0);
        let params = PlanesInParams {
            pixels: own.count() * shape.width,
            width: shape.width,
            channels: shape.channels,
            channels4: shape.channels4(),
            plane: (rows.1 - rows.0) * (shape.width / patch),
            x_width: shape.width / patch,
            frames: 1,
        };
        let launch = planes_in(storage, patch, transform.squash, params);
        self.launch(launch, &[Resource::Buffer(planes), factors, Resource::Buffer(target)]);
    }

    /// Which of the plan's inputs the current stage reads: they stand in the order of their stages.
    fn input_index(&mut self, planes: Planes) -> usize {
        let before = self.fused.stages[..self.stage].iter();
        let index = before.filter(|stage| matches!(stage, Stage::Input { .. })).count();
        if self.plan.inputs.len() == index {
            self.plan.inputs.push(planes);
        }
        index
    }

    /// Bytes after the rows of a chunk of the result: what `image_check` found.
    pub(super) fn check_bytes(&self) -> u64 {
        if self.options.output.stays() { CHECK_BYTES.0 } else { 0 }
    }

    pub(super) fn output(&mut self, input: TensorId, ending: Ending, chunk: usize) {
        let shape = self.fused.shape(input);
        self.plan.result = Planes { size: Size { width: shape.width, height: shape.height }, channels: shape.channels };
        let source = self.tensor(input).chunk(chunk);
        let own = self.nodes[self.stage].partition.chunk(chunk);
        let pixels = own.count() * shape.width;
        let result = self.place(chunk);
        let (width, output) = (shape.width, self.options.output);
        let stride = u32::try_from(output.row_bytes(width, shape.channels) / 4).unwrap_or(u32::MAX);
        let Ending { factor, offset, clamp } = ending;
        let launch = match output {
            Output::Raw => {
                let (channels, channels4) = (shape.channels, shape.channels4());
                planes_out(clamp, PlanesOutParams { pixels, channels, channels4, frames: 1, factor, offset })
            }
            // A picture is cut off at -1 and 1 anyway.
            Output::Rgba8 | Output::Picture(_) => {
                let bgra = output == Output::Picture(ChannelOrder::Bgra);
                image_out(bgra, ImageOutParams { pixels, width, stride, frames: 1, factor, offset })
            }
        };
        self.launch(launch, &[Resource::Buffer(source), Resource::Buffer(result)]);
        if output.stays() {
            let params = ImageCheckParams { pixels, width, stride, check: own.count() * stride };
            self.launch(image_check(params), &[Resource::Buffer(result)]);
        }
        self.step(Action::Output { from: result, rows: (own.start, own.end) }, 0);
    }
}

#[cfg(test)]
mod tests {
    use crate::limits::DeviceLimits;
    use crate::model::graph::{Ending, Graph, Shape, Transform};
    use crate::plan::schedule::{Keep, Schedule};
    use crate::plan::{Action, Output, PlanOptions, fuse, lower, nodes};
    use crate::tensor::{Bytes, Storage};

    /// What is not kept of the input is fetched again.
    #[test]
    fn an_input_that_is_read_again_is_fetched_again() {
        let mut graph = Graph::default();
        let shape = Shape { height: 16, width: 8, channels: 16 };
        let latents = graph.input(shape, Transform::none(16));
        let x = graph.conv2d("conv_in", latents, 16, 3);
        let normed = graph.group_norm("norm", x, 4, 1e-6);
        let image = graph.conv2d("conv_out", normed, 3, 3);
        graph.output(image, Ending::NONE);
        let limits = DeviceLimits::webgpu_default();
        let options = PlanOptions { chunk_limit: Bytes(1 << 11), ..PlanOptions::new(Storage::F32, Output::Raw) };
        let fused = fuse::fuse(&graph, 1.0);
        let nodes = nodes::nodes(&fused, &limits, &options).expect("it fits");
        let schedule = Schedule::new(&nodes, &Keep(vec![0; nodes.len()]), u64::MAX).expect("without bounds");
        let plan = lower::lower(&fused, &nodes, &schedule, &limits, &options).expect("few steps");
        let fetched = plan.steps.iter().filter(|step| matches!(step.action, Action::Fetch { .. })).count();
        assert!(fetched > nodes[0].partition.count(), "fetched {fetched} times");
        assert_eq!(plan.inputs.len(), 1);
    }
}
