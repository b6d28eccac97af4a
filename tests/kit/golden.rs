//! Golden decodes and encodes, made by `tests/fixtures/make_fixtures.py` and `make_families.py`.

use std::collections::BTreeMap;

use pollster::block_on;
use serde_json::Value;
use wgvae::HostTensor;
use wgvae::config::{AutoencoderConfig, Family, Network, SeedVr, Starts, Tiny};
use wgvae::files::FileSource;
use wgvae::internals::safetensors::{read_header, read_tensor};

use crate::formula;
use crate::repository;

/// Fixture of a network.
pub struct Golden {
    /// Config of the network, with the statistics of its latents.
    pub config: AutoencoderConfig,
    pub metadata: BTreeMap<String, String>,
    tensors: BTreeMap<String, HostTensor>,
}

impl Golden {
    /// Reads the fixture `name`.
    pub fn open(name: &str) -> Self {
        let path = repository().join("tests/fixtures").join(format!("{name}.safetensors"));
        let source = FileSource::open(path).expect(name);
        let header = block_on(read_header(&source)).expect(name);
        let read = |(name, info): (&String, _)| {
            let tensor = block_on(read_tensor(&source, name, info)).expect(name);
            (name.clone(), tensor)
        };
        let tensors = header.tensors.iter().map(read).collect();
        Self { config: config(&header.metadata), metadata: header.metadata, tensors }
    }

    /// Returns an output: `image`, `image_own`, `moments`, `encoded`, `encoded_own`.
    pub fn output(&self, name: &str) -> Option<&HostTensor> {
        self.tensors.get(name)
    }

    /// Returns the name of the encoder's direct output: moments, or latents for a tiny autoencoder.
    pub fn encoded(&self) -> &'static str {
        let own = if self.config.takes_own_latents() { "encoded_own" } else { "encoded" };
        let outputs = ["moments", own, "encoded"];
        outputs.into_iter().find(|output| self.tensors.contains_key(*output)).expect("every family encodes")
    }

    /// Returns torch's error in f16 for output `name`: max |torch in f16 - f64| / max |f64|.
    pub fn f16_error(&self, name: &str) -> f32 {
        let key = if name == "image" { "f16_error".to_owned() } else { format!("{name}_f16_error") };
        self.metadata[&key].parse().expect("a number")
    }

    /// Returns latents in the diffusion model's scale.
    pub fn latents(&self) -> HostTensor {
        formula::latents(&self.shape("latent_shape").expect("every fixture decodes"))
    }

    /// Returns latents in the VAE's own scale.
    pub fn own_latents(&self) -> Option<HostTensor> {
        self.given("own_latents", "own_latent_shape", 1.7)
    }

    /// Returns the image to encode.
    pub fn image(&self) -> Option<HostTensor> {
        self.given("image", "image_shape", 1.0)
    }

    /// Returns the frames to encode.
    pub fn pixels(&self) -> Option<HostTensor> {
        self.given("pixels", "pixels_shape", 1.0)
    }

    fn given(&self, name: &str, shape: &str, scale: f32) -> Option<HostTensor> {
        Some(formula::input(name, &self.shape(shape)?, scale))
    }

    fn shape(&self, name: &str) -> Option<Vec<usize>> {
        Some(serde_json::from_str(self.metadata.get(name)?).expect("a shape"))
    }
}

/// Returns the first `channels` channels of `[1, c, ...]`. LTX-2's encoder gives one log variance
/// for all latents, and fixtures repeat it.
pub fn first_channels(tensor: &HostTensor, channels: u32) -> HostTensor {
    let mut shape = tensor.shape.clone();
    let each = tensor.data.len() / shape[1];
    shape[1] = channels as usize;
    HostTensor { data: tensor.data[..each * shape[1]].to_vec(), shape }
}

/// Returns the config of a fixture. For some networks diffusers has no class.
fn config(metadata: &BTreeMap<String, String>) -> AutoencoderConfig {
    let json = &metadata["config"];
    let fields: Value = serde_json::from_str(json).expect("JSON");
    let class = fields["_class_name"].as_str().expect("a class");
    let mut config = match class {
        _ if class.starts_with("TAEF2") => Family::find("taef2").expect("a family").config(),
        _ if class.contains("SeedVR") => seedvr(&fields),
        _ if class.starts_with("tiny_reference") => tiny(&fields),
        _ => AutoencoderConfig::from_json(json).expect("a config"),
    };
    if let Some(family) = metadata.get("family") {
        let AutoencoderConfig { packing, own_latents, scaling_factor, latents_mean, latents_std, .. } =
            Family::find(family).expect("a family").config();
        config = AutoencoderConfig { packing, own_latents, scaling_factor, latents_mean, latents_std, ..config };
    }
    if let Network::Wan(wan) = &mut config.network {
        wan.is_video &= !metadata.contains_key("is_image_only");
    }
    let channels = config.latent_scale().0.len();
    if let Network::Ltx2(_) = config.network {
        // Files have them; see make_families.py.
        let [mean, std] = ["bn.running_mean", "bn.running_var"].map(|name| formula::weight(name, &[channels]).data);
        config.latents_mean = Some(mean.into_iter().map(f64::from).collect());
        config.latents_std = Some(std.into_iter().map(f64::from).collect());
    }
    if let Some(eps) = config.batch_norm_eps {
        let variance = formula::weight("bn.running_var", &[channels]).data;
        config.latents_mean =
            Some(formula::weight("bn.running_mean", &[channels]).data.into_iter().map(f64::from).collect());
        config.latents_std = Some(variance.iter().map(|&variance| (f64::from(variance) + eps).sqrt()).collect());
    }
    config
}

/// Returns the config of a network in `tests/fixtures/tiny_reference.py`.
fn tiny(fields: &Value) -> AutoencoderConfig {
    let list = |field: &str| serde_json::from_value::<Vec<u32>>(fields[field].clone()).expect("numbers");
    let number = |field: &str| serde_json::from_value::<u32>(fields[field].clone()).expect("a number");
    let network = Tiny {
        encoder_block_out_channels: list("encoder_block_out_channels"),
        decoder_block_out_channels: list("decoder_block_out_channels"),
        num_encoder_blocks: list("num_encoder_blocks"),
        num_decoder_blocks: list("num_decoder_blocks"),
        use_midblock_gn: false,
        patch_size: number("patch_size"),
        temporal_downsample: serde_json::from_value(fields["temporal_downsample"].clone()).expect("flags"),
        grow_frames: list("grow_frames"),
        starts: match fields.get("starts").and_then(Value::as_str) {
            Some("first_if_odd") => Starts::FirstIfOdd,
            Some("every_fifth") => Starts::EveryFifth,
            _ => Starts::First,
        },
    };
    AutoencoderConfig {
        in_channels: number("in_channels"),
        out_channels: number("out_channels"),
        shift_factor: Some(0.0),
        ..AutoencoderConfig::new(Network::Tiny(network), number("latent_channels"))
    }
}

fn seedvr(fields: &Value) -> AutoencoderConfig {
    let list: Vec<u32> = serde_json::from_value(fields["block_out_channels"].clone()).expect("channels");
    let number = |field: &str| serde_json::from_value(fields[field].clone()).expect("a number");
    let network = SeedVr {
        block_out_channels: list,
        layers_per_block: number("layers_per_block"),
        norm_num_groups: number("norm_num_groups"),
        temporal_scale_num: number("temporal_scale_num"),
    };
    AutoencoderConfig { network: Network::SeedVr(network), ..Family::find("seedvr2").expect("a family").config() }
}
