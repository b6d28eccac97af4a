//! Variations of `AutoencoderKL`.

use wgvae::config::{AutoencoderConfig, Kl};

/// Returns `config`, which must be of an `AutoencoderKL`, with a change of its network.
pub fn with_kl(mut config: AutoencoderConfig, change: impl FnOnce(&mut Kl)) -> AutoencoderConfig {
    change(config.network.kl_mut().expect("an AutoencoderKL"));
    config
}
