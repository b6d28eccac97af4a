//! Plans as text, compared with the files in `tests/snapshots`. `UPDATE_SNAPSHOTS=1` writes them anew.

use std::path::Path;

use wgvae::internals::odd_network;
use wgvae::model::networks::decoder;
use wgvae::plan::{Plan, PlanOptions};
use wgvae::{AutoencoderConfig, DeviceLimits, Family, Output, Size, Storage};

fn check(name: &str, config: &AutoencoderConfig, (width, height): (u32, u32), storage: Storage, output: Output) {
    let factor = config.spatial_factor();
    let graph = decoder(config, Size { width: width / factor, height: height / factor }, false);
    let limits = DeviceLimits { shader_f16: storage == Storage::F16, ..DeviceLimits::webgpu_default() };
    let found = Plan::new(&graph, &limits, &PlanOptions::new(storage, output)).unwrap().to_string();
    let file = format!("tests/snapshots/{name}.txt");
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(&file);
    if std::env::var_os("UPDATE_SNAPSHOTS").is_some() {
        std::fs::write(&path, &found).unwrap();
        return;
    }
    let wanted = std::fs::read_to_string(&path).unwrap_or_default().replace("\r\n", "\n");
    let lines = found.lines().map(Some).chain(std::iter::repeat(None));
    let difference =
        (1..).zip(wanted.lines().map(Some).chain([None]).zip(lines)).find(|(_, (wanted, found))| wanted != found);
    if let Some((line, (wanted, found))) = difference {
        panic!(
            "{file} differs in line {line}:\n- {}\n+ {}\nIf the plan was meant to change: UPDATE_SNAPSHOTS=1 cargo test \
             --release --test cpu plan_snapshots, and review the diff",
            wanted.unwrap_or("(end)"),
            found.unwrap_or("(end)"),
        );
    }
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
