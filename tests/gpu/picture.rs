//! Pictures that stay on the device.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use pollster::block_on;
use wgvae::images::{ChannelOrder, Output};
use wgvae::tiling::{Blend, BlendRule};
use wgvae::{Bytes, Control, DecodeOptions, Error, HostTensor, LatentSpace, Latents, Parking, Plans, Tiling, Vae};

use crate::streaming::load;

const ORDER: ChannelOrder = ChannelOrder::Bgra;

/// Returns options without a budget, with half of that peak, and with the smallest budget.
fn budgets(vae: &Vae, latents: &Latents) -> [DecodeOptions; 3] {
    let whole = DecodeOptions { parking: Parking::On, ..DecodeOptions::default() };
    let peak =
        vae.planner().plan(&whole.request(latents.size(), LatentSpace::Model, Output::Picture(ORDER))).unwrap().peak();
    let within = |budget| DecodeOptions { memory_budget: Some(budget), ..whole };
    let Err(Error::Budget { smallest, .. }) = vae
        .planner()
        .plan(&within(Bytes(1)).request(latents.size(), LatentSpace::Model, Output::Picture(ORDER)))
        .map(Plans::into_first)
    else {
        panic!("one byte")
    };
    [whole, within(Bytes(smallest.0.midpoint(peak.0))), within(smallest)]
}

#[test]
fn a_picture_on_the_device_is_the_one_that_is_read() {
    // 40, 88 and 192 pixels wide: rows with and without padding.
    for case in ["toy_small_decoder", "toy_odd", "toy_wide"] {
        let (gpu, mut vae, latents) = load(case);
        let read = block_on(vae.decode(&latents)).unwrap();
        for options in budgets(&vae, &latents) {
            let predicted = vae
                .planner()
                .plan(&options.request(latents.size(), LatentSpace::Model, Output::Picture(ORDER)))
                .unwrap()
                .peak();
            assert!(options.memory_budget.is_none_or(|budget| predicted <= budget), "{case}: {predicted}");
            gpu.ledger().restart_peak();
            block_on(vae.decode_picture(&latents, ORDER, &options, &mut Control::default())).unwrap();
            assert_eq!(gpu.ledger().current(), predicted, "{case}");
            assert_eq!(block_on(vae.read_picture()).unwrap(), read.pixels, "{case}");
        }
        let whole = DecodeOptions::default();
        block_on(vae.decode_picture(&latents, ChannelOrder::Rgba, &whole, &mut Control::default())).unwrap();
        assert_eq!(block_on(vae.read_picture()).unwrap(), read.pixels, "{case}");
    }
}

#[test]
fn an_overflow_is_found_without_reading_the_picture() {
    let (_, mut vae, latents) = load("toy_odd");
    let shape = vec![4, latents.size().height as usize, latents.size().width as usize];
    let huge = Latents::new(HostTensor { data: vec![3e38; shape.iter().product()], shape }).unwrap();
    let options = DecodeOptions::default();
    let read = block_on(vae.decode_with(&huge, &options, &mut Control::default())).unwrap_err();
    let stays = block_on(vae.decode_picture(&huge, ORDER, &options, &mut Control::default())).unwrap_err();
    assert!(matches!(stays, Error::NotFinite { .. }), "{stays}");
    assert_eq!(stays.to_string(), read.to_string(), "the same pixel");
    assert!(vae.picture().is_none(), "a broken picture is none");
}

#[test]
fn there_is_a_picture_only_after_a_whole_decode() {
    let (_, mut vae, latents) = load("toy_odd");
    assert!(matches!(block_on(vae.read_picture()), Err(Error::Input { .. })));
    let options = DecodeOptions::default();
    block_on(vae.decode_picture(&latents, ORDER, &options, &mut Control::default())).unwrap();
    assert!(vae.picture().is_some());
    let mut cancelled = Control { cancel: Some(Arc::new(AtomicBool::new(true))), ..Control::default() };
    assert!(matches!(block_on(vae.decode_picture(&latents, ORDER, &options, &mut cancelled)), Err(Error::Cancelled)));
    assert!(vae.picture().is_none(), "half a picture is none");
    block_on(vae.decode_with(&latents, &options, &mut Control::default())).unwrap();
    assert!(vae.picture().is_none(), "the last decode was read");
}

#[test]
fn what_cannot_stay_on_the_device_is_refused() {
    let (_, mut vae, latents) = load("toy_odd");
    let tiles = DecodeOptions {
        tiling: Tiling::Blend(Blend::new(BlendRule::Linear, 4, 1).unwrap()),
        ..DecodeOptions::default()
    };
    let error = block_on(vae.decode_picture(&latents, ORDER, &tiles, &mut Control::default())).unwrap_err();
    assert!(error.to_string().contains("tiles"), "{error}");
}
