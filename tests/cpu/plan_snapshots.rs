//! Plans as text, compared with the files in `tests/snapshots`. `UPDATE_SNAPSHOTS=1` writes them
//! anew.

use test_kit::snapshot;
use wgvae::config::{AutoencoderConfig, Family};
use wgvae::device::DeviceLimits;
use wgvae::images::Output;
use wgvae::internals::odd_network;
use wgvae::model::networks::decoder;
use wgvae::plan::{Plan, PlanOptions};
use wgvae::{LatentSpace, Size, Storage};

fn check(name: &str, config: &AutoencoderConfig, (width, height): (u32, u32), storage: Storage, output: Output) {
    let factor = config.spatial_factor();
    let graph = decoder(config, Size { width: width / factor, height: height / factor }, LatentSpace::Model);
    let limits = DeviceLimits { shader_f16: storage.needs_shader_f16(), ..DeviceLimits::webgpu_default() };
    let found = Plan::new(&graph, &limits, &PlanOptions::new(storage, output)).unwrap().to_string();
    snapshot::check(&format!("tests/snapshots/{name}.txt"), &found, "plan_snapshots");
}

fn family(name: &str) -> AutoencoderConfig {
    Family::find(name).unwrap().config()
}

#[test]
fn sd15_smallest() {
    check("sd15_64x64_f16", &family("sd15"), (64, 64), Storage::F16, Output::Rgba8);
}

#[test]
fn sd15_usual() {
    check("sd15_512x512_f16", &family("sd15"), (512, 512), Storage::F16, Output::Rgba8);
}

#[test]
fn sd15_usual_in_fast() {
    check("sd15_512x512_fast", &family("sd15"), (512, 512), Storage::FastF16, Output::Rgba8);
}

#[test]
fn flux1_many_chunks() {
    check("flux1_1024x1024_packed_f16", &family("flux1"), (1024, 1024), Storage::PackedF16, Output::Rgba8);
}

#[test]
fn cogview4_many_channels() {
    check("cogview4_256x256_f32", &family("cogview4"), (256, 256), Storage::F32, Output::Rgba8);
}

#[test]
fn toy_odd_size() {
    check("toy_26x18_f32_raw", &odd_network(&[12, 24], 6, true), (26, 18), Storage::F32, Output::Raw);
}
