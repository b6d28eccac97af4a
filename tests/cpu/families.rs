//! Every network, both directions: plans interpreted in every storage, whole and in chunks, against what its own class makes of it in f64.

use std::collections::BTreeMap;
use std::path::Path;

use pollster::block_on;
use wgvae::internals::safetensors::{Header, read_header, read_tensor};
use wgvae::model::config::{Network, SeedVr};
use wgvae::model::graph::Graph;
use wgvae::model::networks::{decoder, encoder};
use wgvae::plan::{Plan, PlanOptions};
use wgvae::{
    AutoencoderConfig, Bytes, DeviceKind, DeviceLimits, Family, FileSource, HostTensor, Output, Size, Storage,
};

use crate::formula;
use crate::interpret::{assert_same_bits, relative_error};
use crate::interpreter::interpret_and_measure;
use crate::plan_properties::check_scratch;

struct Fixture {
    name: &'static str,
    source: FileSource,
    header: Header,
    config: AutoencoderConfig,
}

impl Fixture {
    fn open(name: &'static str) -> Self {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(format!("{name}.safetensors"));
        let source = FileSource::open(path).unwrap();
        let header = block_on(read_header(&source)).unwrap();
        let mut config = match name {
            // No class of diffusers': their shapes are published models' with fewer channels.
            "taef2" => Family::find("taef2").unwrap().config(),
            "toy_seedvr" => toy_seedvr(),
            _ => AutoencoderConfig::from_json(&header.metadata["config"]).unwrap(),
        };
        if let Some(eps) = config.batch_norm_eps {
            let channels = [config.model_channels() as usize];
            let deviation = |variance: f32| (variance + eps).sqrt();
            config.latents_mean = Some(formula::weight("bn.running_mean", &channels).data);
            let variance = formula::weight("bn.running_var", &channels).data;
            config.latents_std = Some(variance.into_iter().map(deviation).collect());
        }
        Self { name, source, header, config }
    }

    fn shape(&self, key: &str) -> Vec<usize> {
        serde_json::from_str(&self.header.metadata[key]).unwrap()
    }

    /// The tensor `tensor`, and torch's own error of it in f16.
    fn golden(&self, tensor: &str) -> (HostTensor, f32) {
        let golden = block_on(read_tensor(&self.source, tensor, &self.header.tensors[tensor])).unwrap();
        let error = if tensor == "image" { "f16_error".to_owned() } else { format!("{tensor}_f16_error") };
        (golden, self.header.metadata[&error].parse().unwrap())
    }

    /// Decodes or encodes `input` by `graph`, in every storage, whole and in chunks, and compares with `tensor`.
    fn check(&self, graph: &Graph, input: &HostTensor, tensor: &str) {
        let (golden, f16_error) = self.golden(tensor);
        for storage in [Storage::F32, Storage::F16, Storage::PackedF16] {
            let run = |chunk, kind| {
                let options = PlanOptions { chunk_limit: Bytes(chunk), ..PlanOptions::new(storage, Output::Raw) };
                let limits = DeviceLimits { kind, shader_f16: true, ..DeviceLimits::webgpu_default() };
                let plan = Plan::new(graph, &limits, &options).unwrap();
                crate::plan_checks::check(&plan, &limits);
                let weights = weights_of(&plan);
                let (result, written) = interpret_and_measure(&plan, &weights, &[&input.data]);
                check_scratch(&plan, &written);
                (result, plan.outputs().count())
            };
            let (whole, _) = run(u64::MAX, DeviceKind::Cpu);
            let error = relative_error(&whole, &golden.data);
            println!("{} {tensor} {storage:?}: {error:.1e}, torch in f16 {f16_error:.1e}", self.name);
            let most = if storage == Storage::F32 { 1e-5 } else { 2.0 * f16_error };
            assert!(error <= most, "{} {tensor} {storage:?}: {error:.1e}, at most {most:.1e}", self.name);
            for chunk in [1 << 10, 1 << 13] {
                let (cut, count) = run(chunk, DeviceKind::Gpu);
                assert_same_bits(&cut, &whole, &format!("{} {tensor} {storage:?} in {count} chunks", self.name));
            }
        }
    }

    fn decodes(&self, tensor: &str, unscaled: bool) {
        let key = if unscaled { "own_latent_shape" } else { "latent_shape" };
        let latents = formula::input(if unscaled { "own_latents" } else { "latents" }, &self.shape(key), 1.7);
        self.check(&decoder(&self.config, size_of(&latents.shape), unscaled), &latents, tensor);
    }

    fn encodes(&self, tensor: &str) {
        let image = formula::input("image", &self.shape("image_shape"), 1.0);
        self.check(&encoder(&self.config, size_of(&image.shape)), &image, tensor);
    }
}

/// `SeedVR`'s network with fewer channels.
fn toy_seedvr() -> AutoencoderConfig {
    let network = SeedVr {
        block_out_channels: vec![32, 64, 64, 96],
        layers_per_block: 2,
        norm_num_groups: 16,
        temporal_scale_num: 2,
    };
    AutoencoderConfig { network: Network::SeedVr(network), ..Family::find("seedvr2").unwrap().config() }
}

/// Width and height of `[1, c, h, w]`.
fn size_of(shape: &[usize]) -> Size {
    let [height, width] = [2, 3].map(|axis| u32::try_from(shape[axis]).unwrap());
    Size { width, height }
}

/// The weights that `plan` asks for, by the formula.
fn weights_of(plan: &Plan) -> BTreeMap<String, HostTensor> {
    formula::of(&plan.weights)
}

#[test]
fn kl() {
    for name in ["toy_odd", "toy_no_attention", "toy_two_levels"] {
        Fixture::open(name).encodes("moments");
    }
}

#[test]
fn flux2() {
    for name in ["toy_flux2", "toy_flux2_small_decoder"] {
        let fixture = Fixture::open(name);
        fixture.decodes("image", false);
        fixture.decodes("image_own", true);
        fixture.encodes("moments");
    }
}

#[test]
fn tiny() {
    for name in ["taesd", "taesd3", "toy_tiny"] {
        let fixture = Fixture::open(name);
        fixture.decodes("image", false);
        fixture.encodes("encoded");
    }
}

#[test]
fn taef2() {
    let fixture = Fixture::open("taef2");
    fixture.decodes("image", false);
    fixture.decodes("image_own", true);
    fixture.encodes("encoded_own");
}

#[test]
fn wan() {
    for name in ["toy_wan", "toy_wan_one_block"] {
        let fixture = Fixture::open(name);
        fixture.decodes("image", false);
        fixture.encodes("moments");
    }
}

#[test]
fn seedvr() {
    let fixture = Fixture::open("toy_seedvr");
    fixture.decodes("image", false);
    fixture.encodes("moments");
}
