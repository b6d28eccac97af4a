//! Measuring of the fastest kernels.

use std::time::Duration;

use pollster::block_on;
use test_kit::repository;
use wgvae::device::{DeviceKind, Vendor};
use wgvae::tuning::TuneOptions;
use wgvae::{Checkpoint, Error, Gpu, GpuOptions, LatentSpace, LoadOptions, Planner, Precision, Request, Size};

use crate::decode::{decode, fixture};

/// Opens a device with the kernels of a kind of device and a vendor.
fn gpu(kind: DeviceKind, vendor: Vendor) -> Gpu {
    block_on(Gpu::request(&GpuOptions::default())).unwrap().with_kernels_of(kind, vendor)
}

fn bits(gpu: &Gpu) -> Vec<u32> {
    decode(gpu, &fixture("toy_odd"), Precision::F32).pixels.into_iter().map(f32::to_bits).collect()
}

#[test]
fn every_candidate_gives_the_bits_of_the_rules() {
    for (kind, vendor) in [(DeviceKind::Cpu, Vendor::Other), (DeviceKind::Gpu, Vendor::Nvidia)] {
        let gpu = gpu(kind, vendor);
        // One run each: this tests bits, not times.
        let tuning = block_on(gpu.tune(&TuneOptions { bands: true, time: Duration::ZERO })).unwrap();
        assert_eq!(tuning.trials[0].kernels, gpu.adapter().kernels, "those of the rules run first");
        assert!(tuning.trials.len() > 2, "{tuning:?}");
        assert!(tuning.trials.iter().any(|trial| trial.kernels == tuning.kernels));
        let wanted = bits(&gpu);
        for trial in &tuning.trials {
            assert!(trial.same_bits && trial.seconds > 0.0 && trial.seconds.is_finite(), "{trial:?}");
            let tuned = gpu.clone().with_kernels(trial.kernels).unwrap();
            assert_eq!(tuned.kernels(), &trial.kernels);
            assert_eq!(bits(&tuned), wanted, "{trial:?}");
        }
    }
}

#[test]
fn another_version_measures_again() {
    let key = gpu(DeviceKind::Cpu, Vendor::Other).tuning_key();
    assert!(key.contains(concat!("wgvae ", env!("CARGO_PKG_VERSION"))), "{key}");
}

#[test]
fn without_bands_a_plan_takes_no_other_memory() {
    let gpu = gpu(DeviceKind::Cpu, Vendor::Other);
    let tuning = block_on(gpu.tune(&TuneOptions { bands: false, time: Duration::ZERO })).unwrap();
    let model = repository().join("assets/demo/model");
    let checkpoint = block_on(Checkpoint::open(model)).unwrap();
    let peak = |kernels| {
        let gpu = gpu.clone().with_kernels(kernels).unwrap();
        let planner = Planner::new(&gpu, &checkpoint, LoadOptions::default()).unwrap();
        let plan =
            planner.plan(&Request::decode(Size { width: 64, height: 64 }, LatentSpace::Model)).unwrap().into_first();
        assert_eq!(plan.choice, kernels);
        plan.memory.peak()
    };
    assert!(tuning.trials.len() > 1, "{tuning:?}");
    for trial in &tuning.trials {
        assert_eq!(peak(trial.kernels), peak(gpu.adapter().kernels), "{trial:?}");
    }
}

#[test]
fn kernels_of_another_kind_of_device_are_refused() {
    let gpu = gpu(DeviceKind::Cpu, Vendor::Other);
    let of_cards = self::gpu(DeviceKind::Gpu, Vendor::Nvidia).adapter().kernels;
    let mut no_band = gpu.adapter().kernels;
    no_band.winograd_scratch_bytes = 0;
    for kernels in [of_cards, no_band] {
        let refused = gpu.clone().with_kernels(kernels).expect_err("no such kernels here");
        assert!(matches!(&refused, Error::Input { what, .. } if what == "the choice of kernels"), "{refused}");
    }
}
