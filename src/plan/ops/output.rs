//! The last stage: turns a stored tensor into rows for the host, or into a picture that stays on
//! the device.

use crate::kernels::edges::{ImageCheckParams, ImageOutParams, PlanesOutParams, image_check, image_out, planes_out};
use crate::model::graph::{Ending, TensorId};
use crate::plan::node::{Node, Scratch};
use crate::plan::{Action, CHECK_BYTES, ChannelOrder, Output, PlaneExtents, Resource};
use crate::tensor::Size;

use super::lowering::Lowering;
use super::sizing::{Reach, Sizing};

/// Returns the node of the output stage.
pub(super) fn node(sizing: &Sizing<'_>, input: TensorId) -> Node {
    let shape = sizing.fused.shape(input);
    let partition = sizing.partition(input).clone();
    let reads = vec![sizing.read(&partition, input, Reach::Same)];
    Node {
        partition,
        row_bytes: sizing.options.output.row_bytes(shape.width, shape.channels) * u64::from(shape.frames),
        row_macs: 0,
        reads,
        replaces: None,
        barrier: false,
        scratch: Scratch::default(),
        moments: 0,
        weights: 0,
    }
}

/// Returns the bytes after the rows of a chunk of the result, for the findings of `image_check`.
fn check_bytes(output: Output) -> u64 {
    if output.stays() { CHECK_BYTES.0 } else { 0 }
}

impl Lowering<'_> {
    /// Converts chunk `chunk` of the result and outputs it.
    pub(super) fn output(&mut self, input: TensorId, ending: Ending, chunk: usize) {
        let shape = self.fused.shape(input);
        let (size, frames) = (Size { width: shape.width, height: shape.height }, shape.frames);
        self.plan.result = PlaneExtents { size, channels: shape.channels, frames, first: shape.first };
        let source = self.tensor(input).chunk(chunk);
        let own = self.rows(chunk);
        let pixels = own.count() * shape.width;
        let (width, output) = (shape.width, self.options.output);
        let rows_bytes = self.nodes[self.stage].row_bytes * u64::from(own.count());
        let result = self.new_chunk(chunk, rows_bytes + check_bytes(output));
        let stride = u32::try_from(output.row_bytes(width, shape.channels) / 4).unwrap_or(u32::MAX);
        let Ending { factor, offset, clamp } = ending;
        let launch = match output {
            Output::Raw | Output::Tile => {
                let clamp = clamp && output == Output::Raw;
                let (channels, channels4) = (shape.channels, shape.channels4());
                planes_out(clamp, PlanesOutParams { pixels, channels, channels4, frames, factor, offset })
            }
            // A picture is cut off at -1 and 1 in any case.
            Output::Rgba8 | Output::Picture(_) => {
                let bgra = output == Output::Picture(ChannelOrder::Bgra);
                image_out(bgra, shape.channels == 4, ImageOutParams { pixels, width, stride, frames, factor, offset })
            }
        };
        self.launch(launch, &[Resource::Buffer(source), Resource::Buffer(result)]);
        if output.stays() {
            let params =
                ImageCheckParams { pixels: pixels * frames, width, stride, check: own.count() * frames * stride };
            self.launch(image_check(params), &[Resource::Buffer(result)]);
        }
        self.step(Action::Output { from: result, rows: (own.start, own.end) }, 0);
    }
}
