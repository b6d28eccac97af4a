//! Too little memory, at every point, and the memory that is left in use afterwards.

use std::sync::Arc;

use pollster::block_on;
use wgvae::device::DeviceError;
use wgvae::gpu::{HostBytes, LoadedWeight, Prepared};
use wgvae::images::PixelFormat;
use wgvae::{
    Bytes, Control, DecodeOptions, Error, Gpu, GpuOptions, LatentSpace, Latents, LoadOptions, Parking, Plans,
    Precision, Tiling, Vae,
};

use crate::decode::{checkpoint, fixture};

const RAW: DecodeOptions = DecodeOptions {
    profile: false,
    memory_budget: None,
    least_memory: false,
    parking: Parking::On,
    tiling: Tiling::Exact,
    clip_latents: None,
};

fn gpu(memory_limit: Option<Bytes>) -> Gpu {
    block_on(Gpu::request(&GpuOptions { memory_limit, ..GpuOptions::default() })).unwrap()
}

fn load(gpu: &Gpu, weights_on_host: bool) -> Result<(Vae, Latents), Error> {
    let fixture = fixture("toy_odd");
    let options = LoadOptions { precision: Precision::F32, weights_on_host, ..LoadOptions::default() };
    let vae = block_on(Vae::load(gpu, &checkpoint(&fixture.config), options))?;
    Ok((vae, Latents::new(fixture.latents).unwrap()))
}

fn decode(vae: &mut Vae, latents: &Latents) -> Result<wgvae::Decoded<Vec<f32>>, Error> {
    block_on(vae.decode_raw(latents, &RAW, &mut Control::default()))
}

fn is_out_of_memory(error: &Error) -> bool {
    matches!(error, Error::Device(DeviceError::OutOfMemory { .. }))
}

#[track_caller]
fn assert_same(found: &[f32], wanted: &[f32]) {
    assert_eq!(found.len(), wanted.len());
    let bits = |values: &[f32]| values.iter().map(|value| value.to_bits()).collect::<Vec<_>>();
    assert!(bits(found) == bits(wanted), "not the whole plan's picture");
}

#[test]
fn every_allocation_may_fail_once() {
    for weights_on_host in [false, true] {
        let gpu = gpu(None);
        let (mut vae, latents) = load(&gpu, weights_on_host).unwrap();
        let loaded = gpu.ledger().current();
        let wanted = decode(&mut vae, &latents).unwrap().pixels;
        let other = Latents::new(wgvae::HostTensor { shape: vec![4, 2, 2], data: vec![0.1; 16] }).unwrap();
        // With the weights on the host, a decode with the smallest budget leaves no weights on the
        // GPU.
        let tiny = DecodeOptions { memory_budget: Some(Bytes(1)), ..RAW };
        let between = match vae
            .planner()
            .plan(&tiny.request(other.size(), LatentSpace::Model, PixelFormat::Raw))
            .map(Plans::into_first)
        {
            Err(Error::Budget { smallest, .. }) => DecodeOptions { memory_budget: Some(smallest), ..RAW },
            _ => RAW,
        };
        let (mut failures, mut fallbacks) = (0, 0);
        for skipped in 0.. {
            // Another plan in between frees the buffers of the last decode.
            block_on(vae.prepare(&between.request(other.size(), LatentSpace::Model, PixelFormat::Raw))).unwrap();
            gpu.ledger().fail_after(Some(skipped));
            let result = decode(&mut vae, &latents);
            if gpu.ledger().fail_after(None) {
                assert_eq!(result.unwrap().fallback, None);
                break;
            }
            match result {
                Ok(decoded) => {
                    let fallback = decoded.fallback.expect("an allocation failed");
                    assert!(fallback.peak_bytes < fallback.first_peak_bytes, "{fallback}");
                    assert_same(&decoded.pixels, &wanted);
                    fallbacks += 1;
                }
                Err(error) => {
                    assert!(is_out_of_memory(&error), "allocation {skipped}: {error}");
                    assert_eq!(gpu.ledger().current(), loaded, "allocation {skipped} left something");
                    failures += 1;
                }
            }
            // The next decode gives the same picture; only its plan may differ.
            assert_same(&decode(&mut vae, &latents).unwrap().pixels, &wanted);
        }
        println!("weights on host: {weights_on_host}; {failures} failures, {fallbacks} smaller plans");
        assert!(failures + fallbacks >= if weights_on_host { 30 } else { 8 });
        assert!(fallbacks > 0, "no allocation led to a smaller plan");
        drop(vae);
        assert_eq!(gpu.ledger().current(), Bytes(0));
    }
}

#[test]
fn every_allocation_of_a_load_may_fail() {
    let gpu = gpu(None);
    for skipped in 0.. {
        gpu.ledger().fail_after(Some(skipped));
        let loaded = load(&gpu, false);
        if gpu.ledger().fail_after(None) {
            let (mut vae, latents) = loaded.unwrap();
            decode(&mut vae, &latents).unwrap();
            assert!(skipped > 20, "only {skipped} weights");
            return;
        }
        let error = loaded.expect_err("an allocation failed");
        assert!(is_out_of_memory(&error), "allocation {skipped}: {error}");
        assert_eq!(gpu.ledger().current(), Bytes(0), "allocation {skipped} left something");
    }
}

#[test]
fn the_predicted_peak_is_enough_and_one_byte_less_is_not() {
    for weights_on_host in [false, true] {
        let peak = {
            let gpu = gpu(None);
            let (vae, latents) = load(&gpu, weights_on_host).unwrap();
            vae.planner().plan(&RAW.request(latents.size(), LatentSpace::Model, PixelFormat::Raw)).unwrap().peak()
        };
        let enough = gpu(Some(peak));
        let (mut vae, latents) = load(&enough, weights_on_host).unwrap();
        let wanted = decode(&mut vae, &latents).unwrap();
        assert_eq!(wanted.fallback, None);
        assert_eq!(enough.ledger().peak(), peak);

        let less = gpu(Some(Bytes(peak.0 - 1)));
        let (mut vae, latents) = load(&less, weights_on_host).unwrap();
        let result = decode(&mut vae, &latents);
        assert!(less.ledger().peak() < peak);
        let decoded = result.unwrap();
        let fallback = decoded.fallback.expect("the first plan does not fit");
        assert_eq!(Some(fallback.peak_bytes), vae.predicted_peak());
        assert_eq!(fallback.peak_bytes, less.ledger().current());
        assert_same(&decoded.pixels, &wanted.pixels);
    }
}

/// Tests that a lack of host memory for parked data is an error, not an abort.
#[test]
fn a_host_without_memory_is_an_error() {
    let gpu = gpu(None);
    let (vae, latents) = load(&gpu, true).unwrap();
    let mut plan = vae
        .planner()
        .plan(&RAW.request(latents.size(), LatentSpace::Model, PixelFormat::Raw))
        .map(Plans::into_first)
        .unwrap();
    plan.parked.push(Bytes(u64::MAX / 4));
    let weight = Arc::new(HostBytes::copy_of(&[0; 4]).unwrap());
    let weights = plan.weights.iter().map(|_| LoadedWeight::Host(Arc::clone(&weight))).collect();
    let error = block_on(Prepared::new(&gpu, Arc::new(plan), weights)).unwrap_err();
    assert!(matches!(error, Error::HostMemory { .. }), "{error}");
    assert_eq!(gpu.ledger().current(), Bytes(0));
}
