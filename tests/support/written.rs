//! Weights by the names that a file has for them.

use std::collections::BTreeMap;

use wgvae::HostTensor;
use wgvae::config::{AutoencoderConfig, Network};

use crate::formula;

/// Returns `weights` by their names in a file. LTX-2's has a module in each convolution, and the
/// statistics of latents.
pub(crate) fn as_written(
    config: &AutoencoderConfig,
    weights: BTreeMap<String, HostTensor>,
) -> BTreeMap<String, HostTensor> {
    if !matches!(config.network, Network::Ltx2(_)) {
        return weights;
    }
    let inner = |(name, tensor): (String, HostTensor)| {
        let (module, part) = name.rsplit_once('.').unwrap();
        (format!("{module}.conv.{part}"), tensor)
    };
    let mut written: BTreeMap<String, HostTensor> = weights.into_iter().map(inner).collect();
    for (name, like) in [("latents_mean", "bn.running_mean"), ("latents_std", "bn.running_var")] {
        written.insert(name.to_owned(), formula::weight(like, &[config.latent_channels as usize]));
    }
    written
}
