//! The decoder of diffusers' `AutoencoderKL` as a graph: SD, SDXL, SD3, FLUX.1, Z-Image, CogView4 and their like.
//!
//! Structure and names follow `diffusers.models.autoencoders`: `post_quant_conv`, `conv_in`, `mid_block`, `up_blocks`,
//! `conv_norm_out`, `conv_out`.

use crate::model::config::AutoencoderConfig;
use crate::model::graph::{Ending, Graph, Shape, TensorId, Transform};
use crate::tensor::Size;

/// The eps of every group norm of the family (`resnet_eps=1e-6`; torch's default of 1e-5 is not used).
const NORM_EPS: f32 = 1e-6;

/// The decoder's graph for latents of `latent_size`.
///
/// With `unscaled`, latents are taken as the VAE's own; otherwise as the diffusion model leaves them, and undone first:
/// `z = latents / scaling_factor + shift_factor`, or `latents * std / scaling_factor + mean` where the model has per-channel constants.
pub fn decoder(config: &AutoencoderConfig, latent_size: Size, unscaled: bool) -> Graph {
    let mut graph = Graph::default();
    let (factor, offset) = latent_transform(config, unscaled);
    let shape = Shape { height: latent_size.height, width: latent_size.width, channels: config.latent_channels };
    let mut x = graph.input(shape, Transform { factor, offset, squash: false, patch: 1 });
    if config.use_post_quant_conv {
        x = graph.conv2d("post_quant_conv", x, config.latent_channels, 1);
    }
    let channels: Vec<u32> = config.block_out_channels.iter().rev().copied().collect();
    let top = channels[0];
    x = graph.conv2d("decoder.conv_in", x, top, 3);

    let mut blocks = Blocks { graph: &mut graph, groups: config.norm_num_groups };
    x = blocks.resnet("decoder.mid_block.resnets.0", x, top);
    if config.mid_block_add_attention {
        x = blocks.attention("decoder.mid_block.attentions.0", x);
    }
    x = blocks.resnet("decoder.mid_block.resnets.1", x, top);
    for (level, &level_channels) in channels.iter().enumerate() {
        for index in 0..=config.layers_per_block {
            x = blocks.resnet(&format!("decoder.up_blocks.{level}.resnets.{index}"), x, level_channels);
        }
        if level + 1 < channels.len() {
            let doubled = blocks.graph.upsample(x);
            x = blocks.graph.conv2d(
                &format!("decoder.up_blocks.{level}.upsamplers.0.conv"),
                doubled,
                level_channels,
                3,
            );
        }
    }
    x = blocks.norm_silu("decoder.conv_norm_out", x);
    x = graph.conv2d("decoder.conv_out", x, config.out_channels, 3);
    graph.output(x, Ending::NONE);
    graph
}

/// Factor and summand of each channel that undo the diffusion model's scaling.
fn latent_transform(config: &AutoencoderConfig, unscaled: bool) -> (Vec<f32>, Vec<f32>) {
    let n = config.latent_channels as usize;
    if unscaled {
        return (vec![1.0; n], vec![0.0; n]);
    }
    let factor = match &config.latents_std {
        Some(std) => std.iter().map(|std| std / config.scaling_factor).collect(),
        None => vec![1.0 / config.scaling_factor; n],
    };
    let offset = match &config.latents_mean {
        Some(mean) => mean.clone(),
        None => vec![config.shift_factor; n],
    };
    (factor, offset)
}

struct Blocks<'a> {
    graph: &'a mut Graph,
    groups: u32,
}

impl Blocks<'_> {
    fn norm_silu(&mut self, name: &str, x: TensorId) -> TensorId {
        let normed = self.graph.group_norm(name, x, self.groups, NORM_EPS);
        self.graph.silu(normed)
    }

    /// `ResnetBlock2D`: `x + conv2(silu(norm2(conv1(silu(norm1(x))))))`, x through `conv_shortcut` where channels change.
    fn resnet(&mut self, name: &str, x: TensorId, channels: u32) -> TensorId {
        let mut hidden = self.norm_silu(&format!("{name}.norm1"), x);
        hidden = self.graph.conv2d(&format!("{name}.conv1"), hidden, channels, 3);
        hidden = self.norm_silu(&format!("{name}.norm2"), hidden);
        hidden = self.graph.conv2d(&format!("{name}.conv2"), hidden, channels, 3);
        let residual = if self.graph.shape(x).channels == channels {
            x
        } else {
            self.graph.conv2d(&format!("{name}.conv_shortcut"), x, channels, 1)
        };
        self.graph.add(residual, hidden)
    }

    /// `Attention` with one head: `x + to_out(attention(to_q(y), to_k(y), to_v(y)))`, `y = group_norm(x)`.
    fn attention(&mut self, name: &str, x: TensorId) -> TensorId {
        let channels = self.graph.shape(x).channels;
        let normed = self.graph.group_norm(&format!("{name}.group_norm"), x, self.groups, NORM_EPS);
        let query = self.graph.conv2d(&format!("{name}.to_q"), normed, channels, 1);
        let key = self.graph.conv2d(&format!("{name}.to_k"), normed, channels, 1);
        let value = self.graph.conv2d(&format!("{name}.to_v"), normed, channels, 1);
        let mixed = self.graph.attention(name, query, key, value);
        let branch = self.graph.conv2d(&format!("{name}.to_out.0"), mixed, channels, 1);
        self.graph.add(x, branch)
    }
}
