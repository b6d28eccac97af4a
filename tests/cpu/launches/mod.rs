//! Predicted launches on GPUs, of which only the H200 was measured: bytes, workgroups, waves, and
//! the time by a model. `benches/results/launches.md` contains the result.

mod devices;
mod model;
mod table;
mod ways;
mod work;

use test_kit::snapshot;
use wgvae::config::Family;
use wgvae::device::DeviceLimits;
use wgvae::images::Output;
use wgvae::model::networks::decoder;
use wgvae::plan::{Plan, PlanOptions};
use wgvae::{LatentSpace, Size, Storage};

use self::devices::{DEVICES, Device};
use self::model::{Prediction, WORKGROUPS_PER_CORE, predict};

/// Share of the time from which a kernel is hot.
const HOT: f64 = 0.02;
const FAMILIES: [&str; 3] = ["sd15", "sdxl", "flux1"];
const SIDES: [u32; 2] = [512, 1024];

/// Decode on a device.
struct Decode {
    device: &'static Device,
    family: &'static str,
    /// Pixels a side.
    side: u32,
    prediction: Prediction,
}

fn plan(family: &str, side: u32, limits: &DeviceLimits, storage: Storage) -> Plan {
    let config = Family::find(family).unwrap().config();
    let latents = side / config.spatial_factor();
    let graph = decoder(&config, Size { width: latents, height: latents }, LatentSpace::Model);
    Plan::new(&graph, limits, &PlanOptions::new(storage, Output::Rgba8)).unwrap()
}

/// Predicts all families and sizes on all devices.
fn decodes() -> Vec<Decode> {
    // Devices with equal limits have the same plan.
    let mut plans: Vec<((DeviceLimits, &str, u32), Plan)> = Vec::new();
    let mut decodes = Vec::new();
    for device in &DEVICES {
        for (family, side) in FAMILIES.iter().flat_map(|family| SIDES.map(|side| (*family, side))) {
            let key = (device.limits(), family, side);
            let known = plans.iter().position(|(other, _)| *other == key).unwrap_or_else(|| {
                let plan = plan(family, side, &key.0, device.storage());
                plans.push((key, plan));
                plans.len() - 1
            });
            decodes.push(Decode { device, family, side, prediction: predict(&plans[known].1, device) });
        }
    }
    decodes
}

/// Decode of a device in halves, and in `fast`, whose transformed tiles are in halves, too.
struct Fast {
    device: &'static Device,
    halves: Prediction,
    fast: Prediction,
}

/// Predicts both for all devices that compute in halves.
fn fast(family: &str, side: u32) -> Vec<Fast> {
    let halves = DEVICES.iter().filter(|device| device.storage() == Storage::F16);
    let predicted = |device, storage| predict(&plan(family, side, &Device::limits(device), storage), device);
    halves
        .map(|device| Fast {
            device,
            halves: predicted(device, Storage::F16),
            fast: predicted(device, Storage::FastF16),
        })
        .collect()
}

#[test]
fn no_hot_launch_starves_a_gpu() {
    let decodes = decodes();
    let (family, side) = table::SHOWN;
    snapshot::check("benches/results/launches.md", &table::markdown(&decodes, &fast(family, side)), "launches");
    let starved: Vec<String> = decodes.iter().flat_map(table::starved).collect();
    assert!(
        starved.is_empty(),
        "these have fewer than {WORKGROUPS_PER_CORE} workgroups for a core in {HOT} of the predicted time or more:\n{}",
        starved.join("\n"),
    );
}
