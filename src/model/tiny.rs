//! Graphs of diffusers' `AutoencoderTiny`: TAESD, TAESDXL, TAESD3, TAEF1, and TAEF2, which has
//! norms in the middle.
//!
//! Layers are numbered throughout, including layers without weights, as in diffusers'
//! `encoder.layers` and `decoder.layers`. Inside the network, images are 0 to 1.

use super::config::Tiny;
use super::graph::{Border, Conv2d, Ending, Graph, Shape, TensorId, Transform, Window};

/// Groups and eps of the norm in a branch of TAEF2, and the factor by which the branch widens the
/// channels.
const POOL_GROUPS: u32 = 4;
const POOL_EPS: f32 = 1e-5;
const POOL_WIDTH: u32 = 4;

/// Builds the decoder for latents of `shape`.
pub(super) fn decoder(network: &Tiny, shape: Shape, transform: Transform, out_channels: u32) -> Graph {
    let channels = network.decoder_block_out_channels[0];
    let mut layers = Layers::new("decoder.layers");
    let mut x = layers.graph.input(shape, Transform { squash: true, ..transform });
    x = layers.conv(x, channels);
    x = layers.relu(x);
    let levels = network.num_decoder_blocks.len();
    for (level, &count) in network.num_decoder_blocks.iter().enumerate() {
        x = layers.blocks(x, count, network.use_midblock_gn && level == 0);
        if level + 1 < levels {
            x = layers.upsample(x);
            x = layers.conv_without_bias(x, channels, Window::same(3));
        }
    }
    x = layers.conv(x, out_channels);
    layers.graph.output(x, Ending { factor: 2.0, offset: -1.0, clamp: false });
    layers.graph
}

/// Builds the encoder for images of `shape`, with latents of `channels` channels.
pub(super) fn encoder(network: &Tiny, shape: Shape, channels: u32) -> Graph {
    let width = network.encoder_block_out_channels[0];
    let mut layers = Layers::new("encoder.layers");
    let mut x = layers.graph.input(shape, Transform::uniform(shape.channels, 0.5, 0.5));
    let last = network.num_encoder_blocks.len() - 1;
    for (level, &count) in network.num_encoder_blocks.iter().enumerate() {
        x = match level {
            0 => layers.conv(x, width),
            _ => layers.conv_without_bias(x, width, Window::halving(Border::Around)),
        };
        x = layers.blocks(x, count, network.use_midblock_gn && level == last);
    }
    x = layers.conv(x, channels);
    layers.graph.output(x, Ending::NONE);
    layers.graph
}

/// A graph under construction, to which layers are added one after another.
struct Layers {
    graph: Graph,
    name: &'static str,
    next: u32,
}

impl Layers {
    fn new(name: &'static str) -> Self {
        Self { graph: Graph::default(), name, next: 0 }
    }

    /// Returns the name of the next layer.
    fn name(&mut self) -> String {
        let name = format!("{}.{}", self.name, self.next);
        self.next += 1;
        name
    }

    fn conv(&mut self, x: TensorId, channels: u32) -> TensorId {
        let name = self.name();
        self.graph.conv2d(&name, x, channels, 3)
    }

    fn conv_without_bias(&mut self, x: TensorId, channels: u32, window: Window) -> TensorId {
        let name = self.name();
        self.graph.convolution(&name, x, channels, Conv2d::of(&name, window).without_bias())
    }

    fn relu(&mut self, x: TensorId) -> TensorId {
        self.next += 1;
        self.graph.relu(x)
    }

    fn upsample(&mut self, x: TensorId) -> TensorId {
        self.next += 1;
        self.graph.upsample(x)
    }

    /// Adds `count` blocks, each with a branch before it if `pooled`.
    fn blocks(&mut self, mut x: TensorId, count: u32, pooled: bool) -> TensorId {
        for _ in 0..count {
            let name = self.name();
            if pooled {
                x = self.pool(&format!("{name}.pool"), x);
            }
            x = self.block(&format!("{name}.conv"), x);
        }
        x
    }

    /// Adds an `AutoencoderTinyBlock`: `relu(conv(relu(conv(relu(conv(x))))) + x)`.
    fn block(&mut self, name: &str, x: TensorId) -> TensorId {
        let graph = &mut self.graph;
        let channels = graph.shape(x).channels;
        let mut hidden = graph.conv2d(&format!("{name}.0"), x, channels, 3);
        for part in [2, 4] {
            hidden = graph.relu(hidden);
            hidden = graph.conv2d(&format!("{name}.{part}"), hidden, channels, 3);
        }
        let sum = graph.add(x, hidden);
        graph.relu(sum)
    }

    /// Adds `x + conv(relu(group_norm(conv(x))))`, with 1x1 convolutions to four times the channels
    /// and back.
    fn pool(&mut self, name: &str, x: TensorId) -> TensorId {
        let graph = &mut self.graph;
        let channels = graph.shape(x).channels;
        let [wide, narrow] = [0, 3].map(|part| format!("{name}.{part}"));
        let pointwise = |name: &str| Conv2d::of(name, Window::same(1)).without_bias();
        let mut hidden = graph.convolution(&wide, x, channels * POOL_WIDTH, pointwise(&wide));
        hidden = graph.group_norm(&format!("{name}.1"), hidden, POOL_GROUPS, POOL_EPS);
        hidden = graph.relu(hidden);
        hidden = graph.convolution(&narrow, hidden, channels, pointwise(&narrow));
        graph.add(x, hidden)
    }
}
