//! Lowers the first and the last stage.

use crate::kernels::edges::{
    Colors, ImageCheckParams, ImageOutParams, LatentsInParams, image_check, image_out, latents_in,
};
use crate::model::graph::TensorId;
use crate::plan::fuse::Stage;
use crate::plan::memory::latent_transform_layout;
use crate::plan::{Action, CHECK_BYTES, ChannelOrder, Output, Resource};
use crate::tensor::{Bytes, Size};

use super::Lowering;

impl Lowering<'_> {
    pub(super) fn latents(&mut self, factor: &[f32], offset: &[f32], output: TensorId, chunk: usize) {
        let shape = self.fused.shape(output);
        let plane = shape.width * shape.height;
        let transform = self.weight("latents.factor_offset".to_owned(), latent_transform_layout(shape.channels), 1.0);
        self.plan.latents = Size { width: shape.width, height: shape.height };
        self.plan.latent_channels = shape.channels;
        self.plan.latent_transform = [factor, offset].concat();
        let first = self.latents_before(self.stage);
        let all = self.latents_before(self.fused.stages.len());
        let input = self.input.unwrap_or_else(|| self.buffer("latents.planar".to_owned(), Bytes(u64::from(all) * 4)));
        (self.input, self.plan.input) = (Some(input), input);
        let target = self.place(chunk);
        let stored = &self.stored[self.stage];
        let (storage, own) = (stored.storage, stored.partition.chunk(chunk));
        let params = LatentsInParams {
            pixels: own.count() * shape.width,
            channels: shape.channels,
            channels4: shape.channels4(),
            plane,
            x_offset: first + own.start * shape.width,
            y_offset: 0,
        };
        let bindings = [Resource::Buffer(input), transform, Resource::Buffer(target)];
        self.launch(latents_in(storage, params), &bindings);
    }

    /// Latents, in elements, that the stages before `stage` read.
    fn latents_before(&self, stage: usize) -> u32 {
        let elements = |stage: &Stage| match stage {
            Stage::Latents { output, .. } => {
                let shape = self.fused.shape(*output);
                shape.width * shape.height * shape.channels
            }
            Stage::Conv(_) | Stage::Attention { .. } | Stage::Image { .. } => 0,
        };
        self.fused.stages[..stage].iter().map(elements).sum()
    }

    /// Bytes after the rows of a chunk of the image: what `image_check` found.
    pub(super) fn check_bytes(&self) -> u64 {
        if self.options.output.stays() { CHECK_BYTES.0 } else { 0 }
    }

    pub(super) fn image(&mut self, input: TensorId, chunk: usize) {
        let shape = self.fused.shape(input);
        self.plan.image = Size { width: shape.width, height: shape.height };
        let output = self.options.output;
        let source = self.tensor(input).chunk(chunk);
        let own = self.nodes[self.stage].partition.chunk(chunk);
        let pixels = own.count() * shape.width;
        let result = self.place(chunk);
        let width = shape.width;
        let stride = u32::try_from(output.row_bytes(u64::from(width)) / 4).unwrap_or(u32::MAX);
        let params = ImageOutParams { pixels, width, stride, plane: pixels };
        let order = match output {
            Output::Raw => Colors::Raw,
            Output::Rgba8 | Output::Picture(ChannelOrder::Rgba) => Colors::Rgba,
            Output::Picture(ChannelOrder::Bgra) => Colors::Bgra,
        };
        let launch = image_out(order, params);
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
    use crate::model::graph::{Graph, Shape};
    use crate::plan::schedule::{Keep, Schedule};
    use crate::plan::{Output, PlanOptions, fuse, lower, nodes};
    use crate::tensor::{Bytes, Storage};

    /// The host fills one buffer; a second one, made when the latents are read again, would hold nothing.
    #[test]
    fn latents_that_are_read_again_have_one_input() {
        let mut graph = Graph::default();
        let shape = Shape { height: 16, width: 8, channels: 16 };
        let latents = graph.latents(shape, vec![1.0; 16], vec![0.0; 16]);
        let x = graph.conv2d("conv_in", latents, 16, 3);
        let normed = graph.group_norm("norm", x, 4, 1e-6);
        let image = graph.conv2d("conv_out", normed, 3, 3);
        graph.image(image);
        let limits = DeviceLimits::webgpu_default();
        let options = PlanOptions { chunk_limit: Bytes(1 << 11), ..PlanOptions::new(Storage::F32, Output::Raw) };
        let fused = fuse::fuse(&graph, 1.0);
        let nodes = nodes::nodes(&fused, &limits, &options).expect("it fits");
        let schedule = Schedule::new(&nodes, &Keep(vec![0; nodes.len()]), u64::MAX).expect("without bounds");
        let plan = lower::lower(&fused, &nodes, &schedule, &limits, &options).expect("few steps");
        let read = schedule.tasks.iter().filter(|task| task.stage == 0).count();
        assert!(read > nodes[0].partition.count(), "latents are read {read} times");
        let inputs = plan.buffers.iter().filter(|buffer| buffer.name == "latents.planar").count();
        assert_eq!(inputs, 1);
    }
}
