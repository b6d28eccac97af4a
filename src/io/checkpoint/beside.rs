//! Use of a config.json beside a file that the caller named. It may belong to another file of the
//! folder, so it adds what the weights do not tell, and never replaces what they tell. Native only.

use super::{Checkpoint, LatentScale, shapes_of};
use crate::error::Result;
use crate::io::source::ByteSource;
use crate::model::config::{AutoencoderConfig, Derived, Difference, Network};

impl Checkpoint {
    /// Opens the files of a model by their own contents. `config` is the config beside them, or the
    /// error of reading it.
    pub(in crate::io) async fn assemble_beside(
        name: String,
        sources: Vec<Box<dyn ByteSource>>,
        config: Result<AutoencoderConfig>,
    ) -> Result<Self> {
        let (mut checkpoint, hint) = Self::undecided(name, sources, true).await?;
        let decided = checkpoint.decide(hint);
        match config.map_err(|error| error.to_string()).and_then(|config| checkpoint.fitted(config)) {
            Err(why) => {
                log::warn!("{}: config.json beside it is not used: {why}", checkpoint.name);
                decided?;
                checkpoint.warn_of_groups();
            }
            Ok(config) => checkpoint.add_beside(config, decided.is_ok())?,
        }
        Ok(checkpoint)
    }

    /// Takes over a `config` that fits the weights, unless they tell another scale of latents.
    fn add_beside(&mut self, config: AutoencoderConfig, is_decided: bool) -> Result<()> {
        if let (true, LatentScale::Known { from }) = (is_decided, &self.scale) {
            if config == self.config {
                return Ok(());
            }
            // Weights do not tell how latents are packed.
            let unpacked = AutoencoderConfig { packing: self.config.packing, ..config.clone() };
            if !unpacked.same_scale(&self.config) {
                log::warn!(
                    "{}: config.json beside it is not used: its scale of latents differs from that of {from}. If it belongs to this file, open their folder",
                    self.name
                );
                return Ok(());
            }
        }
        log::info!("{}: using config.json beside it", self.name);
        self.settle(config, "config.json beside the file".to_owned())
    }

    /// Checks that `config` describes the network of the weights. Returns it with what the files
    /// themselves tell, or why it does not fit.
    fn fitted(&self, mut config: AutoencoderConfig) -> std::result::Result<AutoencoderConfig, String> {
        if let Some(Difference { field, .. }) = self.difference(&config) {
            return Err(format!("it describes another model ({field})"));
        }
        let shown = Derived::from_shapes(&self.name, &shapes_of(&self.tensors)).map_err(|error| error.to_string())?;
        match (&mut config.network, &self.derived.unscaled().network) {
            (_, network) if *network == shown.unscaled().network => {}
            // The rest is from the metadata of the file.
            (Network::Kl(kl), Network::Kl(stated)) => kl.padding_mode = stated.padding_mode,
            (Network::Ltx2(ltx2), Network::Ltx2(stated)) => ltx2.clone_from(stated),
            _ => {}
        }
        self.completed(config).map_err(|error| error.to_string())
    }
}
