//! What LTX-2's checkpoints say of their network: JSON among the file's metadata.

use serde_json::{Value, json};

use super::fields::{Fields, show};
use super::{Ltx2, invalid};
use crate::error::Result;

impl Ltx2 {
    /// Takes over what weights do not show: the decoder's borders, and which of its size changes
    /// have a shortcut. `stated` is the metadata's entry `config`; another tool's entry of that name
    /// counts for nothing. Defaults are those of ComfyUI's `VideoVAE`.
    ///
    /// # Errors
    /// [`Error::Config`](crate::Error::Config) if the entry describes another network.
    pub(super) fn take_stated(&mut self, stated: &str) -> Result<()> {
        let Ok(stated) = serde_json::from_str::<Value>(stated) else { return Ok(()) };
        let Some(vae) = stated.get("vae").and_then(Value::as_object) else { return Ok(()) };
        let fields = Fields::new(vae);
        fields.only("timestep_conditioning", &json!(false))?;
        fields.only("causal_decoder", &json!(false))?;
        fields.only("norm_layer", &json!("pixel_norm"))?;
        fields.only("encoder_spatial_padding_mode", &json!("zeros"))?;
        let of_both = fields.reflects("spatial_padding_mode")?;
        self.decoder_reflects = fields.reflects("decoder_spatial_padding_mode")?.or(of_both).unwrap_or(true);
        let Some(blocks) = vae.get("decoder_blocks").and_then(Value::as_array) else { return Ok(()) };
        // A block is a pair of its name and its parameters. They are listed from the picture down.
        let is_change = |block: &&Value| block[0].as_str().is_some_and(|name| name.starts_with("compress_"));
        let residual: Vec<bool> =
            blocks.iter().rev().filter(is_change).map(|block| block[1]["residual"] == json!(true)).collect();
        if residual.len() != self.upsample.len() {
            let expected = format!("{} size changes, as the weights have", self.upsample.len());
            return Err(invalid("decoder_blocks", expected, show(&json!(blocks))));
        }
        self.upsample_residual = residual;
        Ok(())
    }
}

impl Fields<'_> {
    /// Reads how a network treats borders: true if it mirrors its tensors, false if it adds zeros.
    pub(super) fn reflects(&self, field: &str) -> Result<Option<bool>> {
        match self.get(field).map(|mode| mode.as_str()) {
            None => Ok(None),
            Some(Some("zeros")) => Ok(Some(false)),
            Some(Some("reflect")) => Ok(Some(true)),
            Some(_) => Err(invalid(field, "\"zeros\" or \"reflect\"", self.get(field).map_or(String::new(), show))),
        }
    }
}
