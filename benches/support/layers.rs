//! Layers of real decoders, one graph each, for benches of single operations.

use wgvae::model::graph::{Graph, Shape, Transform};

/// A layer: its name, side and channels of the input, channels of the output, side of the filter,
/// and true if it doubles the size.
pub(crate) struct Layer {
    pub(crate) name: &'static str,
    side: u32,
    c_in: u32,
    c_out: u32,
    filter: u32,
    upsample: bool,
}

pub(crate) const LAYERS: [Layer; 7] = [
    Layer { name: "conv_in 4->512 32x32", side: 32, c_in: 4, c_out: 512, filter: 3, upsample: false },
    Layer { name: "conv 512->512 32x32", side: 32, c_in: 512, c_out: 512, filter: 3, upsample: false },
    Layer { name: "conv 512->512 64x64", side: 64, c_in: 512, c_out: 512, filter: 3, upsample: false },
    Layer { name: "conv 256->256 128x128", side: 128, c_in: 256, c_out: 256, filter: 3, upsample: false },
    Layer { name: "conv 128->128 256x256", side: 256, c_in: 128, c_out: 128, filter: 3, upsample: false },
    Layer { name: "upsample conv 256->256 to 128x128", side: 64, c_in: 256, c_out: 256, filter: 3, upsample: true },
    Layer { name: "conv_shortcut 512->256 128x128", side: 128, c_in: 512, c_out: 256, filter: 1, upsample: false },
];

impl Layer {
    /// Builds the graph of the convolution alone, with an upsampling before it if the layer has
    /// one.
    pub(crate) fn graph(&self) -> Graph {
        let mut graph = Graph::default();
        let shape = Shape::image(self.side, self.side, self.c_in);
        let mut x = graph.input(shape, Transform::none(shape.channels));
        if self.upsample {
            x = graph.upsample(x);
        }
        graph.conv2d("conv", x, self.c_out, self.filter);
        graph
    }
}
