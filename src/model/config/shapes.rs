//! Derives a config from the names and shapes of a decoder's weights, for files that come without config.json.

use std::collections::BTreeMap;

use super::{AutoencoderConfig, FAMILIES, Family};
use crate::error::{Error, Result};

/// What the shapes of a decoder tell: its network, but not the scale of its latents.
#[derive(Debug, Clone, PartialEq)]
pub struct Derived {
    unscaled: AutoencoderConfig,
    candidates: Vec<&'static Family>,
}

impl Derived {
    /// Derives from `shapes`: tensor name in diffusers' spelling -> shape. `source` is for errors.
    pub fn from_shapes(source: &str, shapes: &BTreeMap<String, Vec<u64>>) -> Result<Self> {
        let extent = |name: &str, axis: usize| {
            let shape = shapes
                .get(name)
                .ok_or_else(|| Error::MissingTensors { file: source.to_owned(), tensors: vec![name.to_owned()] })?;
            let extent = shape.get(axis).filter(|_| shape.len() == 4).and_then(|&extent| u32::try_from(extent).ok());
            extent.ok_or_else(|| Error::Tensor {
                tensor: name.to_owned(),
                expected: "a 2-D convolution's weight (4 axes)".to_owned(),
                found: format!("{shape:?}"),
            })
        };
        let conv1 = |level: usize, resnet: usize| format!("decoder.up_blocks.{level}.resnets.{resnet}.conv1.weight");
        let count =
            |name: &dyn Fn(usize) -> String| (0..).take_while(|&index| shapes.contains_key(&name(index))).count();

        // up_blocks.0 has the lowest resolution, block_out_channels starts with the highest.
        let levels = count(&|level| conv1(level, 0)).max(1);
        let block_out_channels: Result<Vec<u32>> = (0..levels).rev().map(|level| extent(&conv1(level, 0), 0)).collect();
        let resnets = u32::try_from(count(&|resnet| conv1(0, resnet))).unwrap_or(u32::MAX);
        let unscaled = AutoencoderConfig {
            out_channels: extent("decoder.conv_out.weight", 0)?,
            latent_channels: extent("decoder.conv_in.weight", 1)?,
            block_out_channels: block_out_channels?,
            layers_per_block: resnets.saturating_sub(1),
            // Not to be seen in shapes, and 32 in every published model.
            norm_num_groups: 32,
            mid_block_add_attention: shapes.contains_key("decoder.mid_block.attentions.0.to_q.weight"),
            use_post_quant_conv: shapes.contains_key("post_quant_conv.weight"),
            scaling_factor: 1.0,
            shift_factor: 0.0,
            latents_mean: None,
            latents_std: None,
            force_upcast: true,
            sample_size: None,
        };
        let fits = |family: &&Family| family.config().network_difference(&unscaled).is_none();
        let candidates = FAMILIES.iter().filter(fits).collect();
        Ok(Self { unscaled, candidates })
    }

    /// The config with scale 1 and shift 0: latents are what the decoder itself takes.
    pub fn unscaled(&self) -> &AutoencoderConfig {
        &self.unscaled
    }

    /// The published families with this network. Empty for one that is not known.
    pub fn candidates(&self) -> &[&'static Family] {
        &self.candidates
    }

    /// The one candidate, or the first of several whose latents mean the same. `None` if the shapes do not decide.
    pub fn decided(&self) -> Option<&'static Family> {
        let first = self.candidates.first()?;
        self.candidates.iter().all(|family| family.same_scale(first)).then_some(first)
    }
}
