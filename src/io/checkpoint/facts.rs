//! What a checkpoint is, as one flat record: for people, and for callers in other languages.

use serde::Serialize;
use serde_json::{Map, Value, json};

use super::{Checkpoint, LatentScale};
use crate::model::config::AutoencoderConfig;

impl Checkpoint {
    /// The facts about it, from its headers alone: files, names, scale, network, numbers of weights.
    pub fn facts(&self) -> Value {
        let types: Map<String, Value> =
            self.element_types().into_iter().map(|(dtype, count)| (dtype.to_string(), json!(count))).collect();
        let files: Vec<Value> = self.files().map(|(name, bytes)| json!({ "name": name, "bytes": bytes })).collect();
        json!({
            "model": self.name(),
            "files": files,
            "layout": self.layout().to_string(),
            "scale": scale_facts(self.scale()),
            "config": ConfigFacts::of(self.config()),
            "tensors": self.names().count(),
            "element_types": types,
            "parameters": self.parameters(),
            "encoder": self.has_encoder(),
        })
    }
}

fn scale_facts(scale: &LatentScale) -> Value {
    match scale {
        LatentScale::Known { from } => json!({ "known": true, "from": from }),
        LatentScale::Unknown { candidates } => json!({ "known": false, "candidates": candidates }),
    }
}

/// A config as it is printed: diffusers' names, and what follows from them.
#[derive(Serialize)]
struct ConfigFacts<'a> {
    out_channels: u32,
    latent_channels: u32,
    spatial_factor: u32,
    block_out_channels: &'a [u32],
    layers_per_block: u32,
    norm_num_groups: u32,
    mid_block_add_attention: bool,
    use_post_quant_conv: bool,
    scaling_factor: f32,
    shift_factor: f32,
    latents_mean: Option<&'a [f32]>,
    latents_std: Option<&'a [f32]>,
    force_upcast: bool,
    sample_size: Option<u32>,
}

impl<'a> ConfigFacts<'a> {
    fn of(config: &'a AutoencoderConfig) -> Self {
        Self {
            out_channels: config.out_channels,
            latent_channels: config.latent_channels,
            spatial_factor: config.spatial_factor(),
            block_out_channels: &config.block_out_channels,
            layers_per_block: config.layers_per_block,
            norm_num_groups: config.norm_num_groups,
            mid_block_add_attention: config.mid_block_add_attention,
            use_post_quant_conv: config.use_post_quant_conv,
            scaling_factor: config.scaling_factor,
            shift_factor: config.shift_factor,
            latents_mean: config.latents_mean.as_deref(),
            latents_std: config.latents_std.as_deref(),
            force_upcast: config.force_upcast,
            sample_size: config.sample_size,
        }
    }
}
