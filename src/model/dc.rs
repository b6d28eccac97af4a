//! Graphs of DC-AE: diffusers' `AutoencoderDC`.
//!
//! There is no norm before a convolution, and no group norm: each block ends with a norm of pixels
//! or a batch norm, whose result is added to the block's input. Levels of low resolution have
//! linear attention. A shortcut without weights leads around each size change, as in
//! HunyuanImage 2.1.

use super::blocks::{Blocks, Kernel, NormKind};
use super::config::{Dc, DcBlock, DcLevel, DcNorm};
use super::graph::{
    Activation, Border, Conv2d, Ending, Graph, PixelNormKind, Regroup, Resize, Shape, TensorId, Transform, WeightSlice,
    Window,
};

/// Factor between the channels of a gated block's depthwise convolution and those of the level.
const EXPANSION: u32 = 8;

/// Builds the decoder for latents of `shape`.
pub(super) fn decoder(network: &Dc, shape: Shape, transform: Transform, out_channels: u32) -> Graph {
    let mut blocks = blocks();
    let latents = blocks.graph.input(shape, transform);
    let mut levels = network.decoder.iter().enumerate().rev().peekable();
    let last = levels.peek().map_or(shape.channels, |(_, level)| level.channels);
    let copies = network
        .decoder_in_shortcut
        .then(|| blocks.graph.regroup("decoder.conv_in (shortcut)", latents, Regroup::COPY, last, None));
    let mut x = blocks.conv3("decoder.conv_in", latents, last);
    if let Some(copies) = copies {
        x = blocks.graph.add(copies, x);
    }
    for (index, level) in levels.filter(|(_, level)| level.layers > 0) {
        let list = format!("decoder.up_blocks.{index}");
        let mut number = 0;
        if index + 1 < network.decoder.len() {
            x = up(&mut blocks, &format!("{list}.0"), x, level.channels, network.shuffles, true);
            number = 1;
        }
        x = layers(&mut blocks, network, &list, number, x, level);
    }
    x = blocks.norm("decoder.norm_out", x);
    x = activation(&mut blocks.graph, x, network.decoder_conv_act_fn);
    x = if network.decoder[0].layers > 0 {
        blocks.conv3("decoder.conv_out", x, out_channels)
    } else {
        up(&mut blocks, "decoder.conv_out", x, out_channels, network.shuffles, false)
    };
    blocks.graph.output(x, Ending::NONE);
    blocks.graph
}

/// Builds the encoder for images of `shape`. Its output has `channels` channels: the latents.
pub(super) fn encoder(network: &Dc, shape: Shape, channels: u32) -> Graph {
    let mut blocks = blocks();
    let mut x = blocks.graph.input(shape, Transform::none(shape.channels));
    x = if network.encoder[0].layers > 0 {
        blocks.conv3("encoder.conv_in", x, network.encoder[0].channels)
    } else {
        down(&mut blocks, "encoder.conv_in", x, network.encoder[1].channels, network.unshuffles, false)
    };
    for (index, level) in network.encoder.iter().enumerate().filter(|(_, level)| level.layers > 0) {
        let list = format!("encoder.down_blocks.{index}");
        x = layers(&mut blocks, network, &list, 0, x, level);
        if let Some(next) = network.encoder.get(index + 1) {
            x = down(&mut blocks, &format!("{list}.{}", level.layers), x, next.channels, network.unshuffles, true);
        }
    }
    let means = network
        .encoder_out_shortcut
        .then(|| blocks.graph.regroup("encoder.conv_out (shortcut)", x, Regroup::COPY, channels, None));
    x = blocks.conv3("encoder.conv_out", x, channels);
    if let Some(means) = means {
        x = blocks.graph.add(means, x);
    }
    blocks.graph.output(x, Ending::NONE);
    blocks.graph
}

fn blocks() -> Blocks {
    Blocks::new(NormKind::Pixel(PixelNormKind::Affine), Kernel::Image(WeightSlice::All))
}

fn activation(graph: &mut Graph, x: TensorId, function: Activation) -> TensorId {
    match function {
        Activation::Silu => graph.silu(x),
        Activation::Relu => graph.relu(x),
    }
}

/// Adds the blocks of `level`, numbered in `list` from `first` on.
fn layers(blocks: &mut Blocks, network: &Dc, list: &str, first: u32, mut x: TensorId, level: &DcLevel) -> TensorId {
    for number in first..first + level.layers {
        let name = format!("{list}.{number}");
        x = match &level.block {
            DcBlock::Res { act_fn, norm } => res_block(blocks, &name, x, *act_fn, *norm),
            DcBlock::EfficientVit { qkv_multiscales } => {
                let x = attention(blocks, &format!("{name}.attn"), x, network.attention_head_dim, qkv_multiscales);
                gated_block(blocks, &format!("{name}.conv_out"), x)
            }
        };
    }
    x
}

/// Adds a `ResBlock`: `x + norm(conv2(act(conv1(x))))`. A batch norm is part of the weights of
/// `conv2` when a checkpoint is read.
fn res_block(blocks: &mut Blocks, name: &str, x: TensorId, act_fn: Activation, norm: DcNorm) -> TensorId {
    let channels = blocks.graph.shape(x).channels;
    let mut hidden = blocks.conv3(&format!("{name}.conv1"), x, channels);
    hidden = activation(&mut blocks.graph, hidden, act_fn);
    let conv2 = format!("{name}.conv2");
    let filter = Conv2d::of(&conv2, Window::same(3));
    hidden = match norm {
        DcNorm::Batch => blocks.graph.convolution(&conv2, hidden, channels, filter),
        DcNorm::Rms => {
            let hidden = blocks.graph.convolution(&conv2, hidden, channels, filter.without_bias());
            blocks.norm(&format!("{name}.norm"), hidden)
        }
    };
    blocks.graph.add(x, hidden)
}

/// Adds a `SanaMultiscaleLinearAttention` with heads of `head_dim` channels and filters of these
/// sides: `x + norm_out(to_out(attention(qkv, filtered qkv)))`. The channels of `qkv` are those of
/// `to_q`, then `to_k`, then `to_v`. A head takes the next three times `head_dim` of them, whatever
/// they are: so the model was trained.
fn attention(blocks: &mut Blocks, name: &str, x: TensorId, head_dim: u32, scales: &[u32]) -> TensorId {
    let channels = blocks.graph.shape(x).channels;
    let product = |blocks: &mut Blocks, name: &str, x: TensorId, channels: u32, groups: u32| {
        let conv = Conv2d::of(name, Window::same(1)).without_bias().grouped(groups);
        blocks.graph.convolution(name, x, channels, conv)
    };
    let qkv = product(blocks, &format!("{name}.to_qkv"), x, channels * 3, 1);
    let mut inputs = vec![qkv];
    for (index, &side) in scales.iter().enumerate() {
        let scale = format!("{name}.to_qkv_multiscale.{index}");
        let proj_in = format!("{scale}.proj_in");
        let conv = Conv2d::of(&proj_in, Window::same(side)).without_bias().grouped(channels * 3);
        let filtered = blocks.graph.convolution(&proj_in, qkv, channels * 3, conv);
        let groups = channels * 3 / head_dim;
        inputs.push(product(blocks, &format!("{scale}.proj_out"), filtered, channels * 3, groups));
    }
    let mixed = blocks.graph.linear_attention(name, &inputs, head_dim);
    let mut hidden = product(blocks, &format!("{name}.to_out"), mixed, channels, 1);
    hidden = blocks.norm(&format!("{name}.norm_out"), hidden);
    blocks.graph.add(x, hidden)
}

/// Adds a `GLUMBConv`: `x + norm(conv_point(gate(conv_depth(silu(conv_inverted(x))))))`.
fn gated_block(blocks: &mut Blocks, name: &str, x: TensorId) -> TensorId {
    let channels = blocks.graph.shape(x).channels;
    let wide = channels * EXPANSION;
    let mut hidden = blocks.graph.conv2d(&format!("{name}.conv_inverted"), x, wide, 1);
    hidden = blocks.graph.silu(hidden);
    let conv_depth = format!("{name}.conv_depth");
    let filter = Conv2d::of(&conv_depth, Window::same(3)).grouped(wide);
    hidden = blocks.graph.convolution(&conv_depth, hidden, wide, filter);
    hidden = blocks.graph.gate(hidden);
    let conv_point = format!("{name}.conv_point");
    let filter = Conv2d::of(&conv_point, Window::same(1)).without_bias();
    hidden = blocks.graph.convolution(&conv_point, hidden, channels, filter);
    hidden = blocks.norm(&format!("{name}.norm"), hidden);
    blocks.graph.add(x, hidden)
}

/// Adds a `DCDownBlock2d` to `channels` channels, with a `shortcut` of means around it.
fn down(blocks: &mut Blocks, name: &str, x: TensorId, channels: u32, unshuffles: bool, shortcut: bool) -> TensorId {
    let halve = Regroup { resize: Resize::Halve, ..Regroup::COPY };
    let sum = shortcut.then(|| blocks.graph.regroup(&format!("{name} (shortcut)"), x, halve, channels, None));
    let conv = format!("{name}.conv");
    if unshuffles {
        let moved = blocks.conv3(&conv, x, channels / 4);
        return blocks.graph.regroup(name, moved, halve, channels, sum);
    }
    let made = blocks.graph.convolution(&conv, x, channels, Conv2d::of(&conv, Window::halving(Border::Around)));
    sum.map_or(made, |sum| blocks.graph.add(sum, made))
}

/// Adds a `DCUpBlock2d` to `channels` channels, with a `shortcut` of copies around it.
fn up(blocks: &mut Blocks, name: &str, x: TensorId, channels: u32, shuffles: bool, shortcut: bool) -> TensorId {
    let double = Regroup { resize: Resize::Double, ..Regroup::COPY };
    let sum = shortcut.then(|| blocks.graph.regroup(&format!("{name} (shortcut)"), x, double, channels, None));
    let conv = format!("{name}.conv");
    if shuffles {
        let moved = blocks.conv3(&conv, x, channels * 4);
        return blocks.graph.regroup(name, moved, double, channels, sum);
    }
    let doubled = blocks.graph.upsample(x);
    let made = blocks.conv3(&conv, doubled, channels);
    sum.map_or(made, |sum| blocks.graph.add(sum, made))
}
