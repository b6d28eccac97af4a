//! Weights by the names that a file has for them.

use std::collections::BTreeMap;

use wgvae::HostTensor;
use wgvae::config::{AutoencoderConfig, Network};

use crate::formula;

/// Returns `weights` by their names in a file. DC-AE's has queries, keys and values apart, and
/// batch norms. LTX-2's and HunyuanVideo's have a module in each convolution over frames. LTX-2's
/// has the statistics of latents, too.
pub fn as_written(config: &AutoencoderConfig, weights: BTreeMap<String, HostTensor>) -> BTreeMap<String, HostTensor> {
    match config.network {
        Network::Ltx2(_) | Network::HunyuanVideo(_) => {}
        Network::Dc(_) => return with_batch_norms(weights).into_iter().flat_map(apart).collect(),
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

/// Returns `weights` with a batch norm in each block where `conv2` has summands. The norm's factors
/// and means come from the formula, and leave the result as it is.
fn with_batch_norms(mut weights: BTreeMap<String, HostTensor>) -> BTreeMap<String, HostTensor> {
    let blocks: Vec<String> =
        weights.keys().filter_map(|name| name.strip_suffix(".conv2.bias").map(str::to_owned)).collect();
    for block in blocks {
        let mut bias = weights.remove(&format!("{block}.conv2.bias")).unwrap();
        let [weight, mean, var] = ["weight", "running_mean", "running_var"]
            .map(|part| formula::weight(&format!("{block}.norm.{part}"), &bias.shape));
        let filter = weights.get_mut(&format!("{block}.conv2.weight")).unwrap();
        let columns = filter.data.len() / bias.data.len();
        for channel in 0..bias.data.len() {
            let factor = weight.data[channel] / (var.data[channel] + 1e-5).sqrt();
            filter.data[channel * columns..][..columns].iter_mut().for_each(|value| *value /= factor);
            bias.data[channel] += mean.data[channel] * factor;
        }
        for (part, tensor) in [("weight", weight), ("bias", bias), ("running_mean", mean), ("running_var", var)] {
            weights.insert(format!("{block}.norm.{part}"), tensor);
        }
    }
    weights
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
