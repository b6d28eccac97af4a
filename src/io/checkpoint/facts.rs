//! The facts about a checkpoint in one flat record, for people and for callers in other languages.

use serde_json::{Map, Value, json};

use super::{Checkpoint, LatentScale};
use crate::model::config::AutoencoderConfig;

impl Checkpoint {
    /// Collects the facts from the headers alone: files, names, scale, network, numbers of weights.
    pub fn facts(&self) -> Value {
        let mut types = Map::new();
        types.extend(self.element_types().into_iter().map(|(dtype, count)| (dtype.to_string(), json!(count))));
        let files: Vec<Value> = self.files().map(|(name, bytes)| json!({ "name": name, "bytes": bytes })).collect();
        json!({
            "model": self.name(),
            "files": files,
            "layout": self.layout().to_string(),
            "scale": scale_facts(self.scale()),
            "config": config_facts(self.config()),
            "tensors": self.names().count(),
            "element_types": types,
            "parameters": self.parameters(),
            "encoder": self.has_encoder(),
            "decoder": self.has_decoder(),
        })
    }
}

fn scale_facts(scale: &LatentScale) -> Value {
    match scale {
        LatentScale::Known { from } => json!({ "known": true, "from": from }),
        LatentScale::Unknown { candidates } => json!({ "known": false, "candidates": candidates }),
    }
}

/// Converts a config as it is printed: diffusers' fields, and values that follow from them.
fn config_facts(config: &AutoencoderConfig) -> Value {
    let mut facts = json!(config);
    facts["spatial_factor"] = json!(config.spatial_factor());
    facts["model_channels"] = json!(config.model_channels());
    facts
}
