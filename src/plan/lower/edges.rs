//! Lowers the first and the last stage.

use crate::kernels::edges::{ImageOutParams, LatentsInParams, image_out, latents_in};
use crate::model::graph::TensorId;
use crate::plan::memory::latent_transform_layout;
use crate::plan::{Action, Output, Resource};
use crate::tensor::{Bytes, Size};

use super::Lowering;

impl Lowering<'_> {
    pub(super) fn latents(&mut self, factor: &[f32], offset: &[f32], output: TensorId) {
        let shape = self.fused.shape(output);
        self.plan.latents = Size { width: shape.width, height: shape.height };
        self.plan.latent_channels = shape.channels;
        self.plan.latent_transform = [factor, offset].concat();
        let plane = shape.width * shape.height;
        let bytes = Bytes(u64::from(plane) * u64::from(shape.channels) * 4);
        self.plan.input = self.buffer("latents.planar".to_owned(), bytes);
        let transform = self.weight("latents.factor_offset".to_owned(), latent_transform_layout(shape.channels), 1.0);
        let stored = self.allocate(output, true);
        for (index, chunk) in stored.chunks.iter().enumerate() {
            let own = stored.partition.chunks[index];
            let params = LatentsInParams {
                pixels: own.count() * shape.width,
                channels: shape.channels,
                channels4: shape.channels4(),
                plane,
                x_offset: own.start * shape.width,
                y_offset: (own.start - stored.rows(index).start) * shape.width * shape.channels4(),
            };
            let bindings = [Resource::Buffer(self.plan.input), transform, Resource::Buffer(*chunk)];
            self.launch(latents_in(stored.storage, params), &bindings);
            self.copy_halo(output, &stored, index);
        }
    }

    pub(super) fn image(&mut self, input: TensorId) {
        let shape = self.fused.shape(input);
        self.plan.image = Size { width: shape.width, height: shape.height };
        let raw = self.options.output == Output::Raw;
        let stored = self.tensors[&input].clone();
        for (index, chunk) in stored.chunks.iter().enumerate() {
            let own = stored.partition.chunks[index];
            let pixels = own.count() * shape.width;
            let bytes = u64::from(pixels) * if raw { 12 } else { 4 };
            let result = self.buffer(format!("image[{index}]"), Bytes(bytes));
            let params = ImageOutParams {
                pixels,
                x_offset: (own.start - stored.rows(index).start) * shape.width * shape.channels4(),
                y_offset: 0,
                plane: pixels,
            };
            self.launch(image_out(raw, params), &[Resource::Buffer(*chunk), Resource::Buffer(result)]);
            self.step(Action::Output { from: result, rows: (own.start, own.end) }, 0);
        }
    }
}
