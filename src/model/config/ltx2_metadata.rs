//! Facts about LTX-2's network in the metadata of its checkpoints, as JSON.

use serde_json::Value;

use super::fields::Fields;
use super::json::check_length;
use super::{Ltx2, invalid};
use crate::error::Result;

impl Ltx2 {
    /// Takes over what weights do not show: the decoder's borders, and which of its size changes
    /// have a shortcut. `stated` is the metadata's entry `config`; one of another tool counts for
    /// nothing. As in ComfyUI's `VideoVAE`, `spatial_padding_mode` goes before the modes of the two
    /// halves, and a decoder without any mirrors.
    ///
    /// # Errors
    /// [`Error::Config`](crate::Error::Config) if the entry describes another network, or is
    /// longer than any config.
    pub(super) fn take_stated(&mut self, stated: &str, has_encoder: bool) -> Result<()> {
        check_length("config of the metadata", stated)?;
        let Ok(stated) = serde_json::from_str::<Value>(stated) else { return Ok(()) };
        let Some(vae) = stated.get("vae").and_then(Value::as_object) else { return Ok(()) };
        let fields = Fields::new(vae);
        fields.only("timestep_conditioning", "false")?;
        fields.only("causal_decoder", "false")?;
        fields.only("norm_layer", "\"pixel_norm\"")?;
        let whole = fields.reflects("spatial_padding_mode")?;
        self.decoder_reflects = whole.or(fields.reflects("decoder_spatial_padding_mode")?).unwrap_or(true);
        if has_encoder {
            // The encoder adds zeros in every published file.
            fields.only("spatial_padding_mode", "\"zeros\"")?;
            fields.only("encoder_spatial_padding_mode", "\"zeros\"")?;
        }
        let Some(blocks) = vae.get("decoder_blocks").and_then(Value::as_array) else { return Ok(()) };
        // A block is a pair of its name and its parameters. They are listed from the picture down.
        let is_change = |block: &&Value| block[0].as_str().is_some_and(|name| name.starts_with("compress_"));
        let residual: Vec<bool> =
            blocks.iter().rev().filter(is_change).map(|block| block[1]["residual"].as_bool() == Some(true)).collect();
        if residual.len() != self.upsample.len() {
            let expected = format!("{} size changes, as the weights have", self.upsample.len());
            return Err(invalid("decoder_blocks", expected, format!("{}", residual.len())));
        }
        self.upsample_residual = residual;
        Ok(())
    }
}
