//! Weights by the names that a file has for them.

use std::collections::BTreeMap;

use wgvae::HostTensor;
use wgvae::config::{AutoencoderConfig, Network};

use crate::formula;

/// Returns `weights` by their names in a file. DC-AE's has queries, keys and values apart. LTX-2's
/// and HunyuanVideo's have a module in each convolution over frames. LTX-2's has the statistics of
/// latents, too.
pub(crate) fn as_written(
    config: &AutoencoderConfig,
    weights: BTreeMap<String, HostTensor>,
) -> BTreeMap<String, HostTensor> {
    match config.network {
        Network::Ltx2(_) | Network::HunyuanVideo(_) => {}
        Network::Dc(_) => return weights.into_iter().flat_map(apart).collect(),
        Network::Kl(_) | Network::Tiny(_) | Network::Wan(_) | Network::SeedVr(_) => return weights,
    }
    let inner = |(name, tensor): (String, HostTensor)| {
        let (module, part) = name.rsplit_once('.').unwrap();
        let is_plain = part == "gamma" || module.contains(".attentions.");
        (if is_plain { name } else { format!("{module}.conv.{part}") }, tensor)
    };
    let mut written: BTreeMap<String, HostTensor> = weights.into_iter().map(inner).collect();
    if !matches!(config.network, Network::Ltx2(_)) {
        return written;
    }
    for (name, like) in [("latents_mean", "bn.running_mean"), ("latents_std", "bn.running_var")] {
        written.insert(name.to_owned(), formula::weight(like, &[config.latent_channels as usize]));
    }
    written
}

/// Returns the three tensors of which one that was joined consists, or any other as it is.
fn apart((name, tensor): (String, HostTensor)) -> Vec<(String, HostTensor)> {
    let Some(module) = name.strip_suffix("to_qkv.weight") else { return vec![(name, tensor)] };
    let (shape, rows) = (vec![tensor.shape[0] / 3, tensor.shape[1]], tensor.data.len() / 3);
    let parts = ["q", "k", "v"].into_iter().zip(tensor.data.chunks(rows));
    parts
        .map(|(part, data)| {
            (format!("{module}to_{part}.weight"), HostTensor { shape: shape.clone(), data: data.to_vec() })
        })
        .collect()
}
