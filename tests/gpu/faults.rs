//! Faults at every point of a decode: at every step in a full run, otherwise at some steps from the
//! first to the last.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use pollster::block_on;
use test_kit::sweep::is_full;
use wgvae::{Bytes, Control, DecodeOptions, Decoded, Error, Gpu, Latents, Progress, Result, Vae};

use crate::streaming::load;

const MODEL: &str = "toy_odd";

const OPTIONS: DecodeOptions = DecodeOptions {
    profile: false,
    memory_budget: None,
    least_memory: false,
    parking: wgvae::Parking::On,
    tiling: wgvae::Tiling::Exact,
    clip_latents: None,
};

/// Decodes with one submission per step, and calls `at` with the number of each step that has
/// ended.
fn decode(
    vae: &mut Vae,
    latents: &Latents,
    cancel: &Arc<AtomicBool>,
    mut at: impl FnMut(usize) + Send,
) -> Result<Decoded<Vec<f32>>> {
    let mut step = 0;
    let mut progress = |_: Progress<'_>| {
        at(step);
        step += 1;
    };
    let mut control = Control {
        progress: Some(&mut progress),
        cancel: Some(Arc::clone(cancel)),
        submission_target: Some(Duration::ZERO),
    };
    block_on(vae.decode_raw(latents, &OPTIONS, &mut control))
}

/// Returns the model, its decoded result, and the steps at which faults are injected. The last two
/// steps are excluded, because nothing is submitted after them.
fn prepare() -> (Gpu, Vae, Latents, Decoded<Vec<f32>>, Vec<usize>) {
    let (gpu, mut vae, latents) = load(MODEL);
    let mut steps = 0_usize;
    let wanted = decode(&mut vae, &latents, &Arc::default(), |step| steps = step).unwrap();
    assert!(steps >= 20, "{steps} steps");
    steps -= 1;
    let points = if is_full() { steps } else { 5 };
    (gpu, vae, latents, wanted, (0..points).map(|point| point * steps / points).collect())
}

fn said(result: &Result<Decoded<Vec<f32>>>) -> String {
    result.as_ref().map_or_else(ToString::to_string, |_| "a picture".to_owned())
}

#[test]
fn a_decode_may_be_cancelled_at_any_step() {
    let (gpu, mut vae, latents, wanted, faults) = prepare();
    let created = gpu.ledger().created();
    for fault in faults {
        let cancel = Arc::new(AtomicBool::new(false));
        let result = decode(&mut vae, &latents, &cancel, |step| cancel.store(step >= fault, Ordering::Relaxed));
        assert!(matches!(result, Err(Error::Cancelled)), "step {fault}: {}", said(&result));
        let again = decode(&mut vae, &latents, &Arc::default(), |_| {}).unwrap();
        assert_eq!(again.pixels, wanted.pixels, "after a cancel at step {fault}");
    }
    assert_eq!(gpu.ledger().created(), created, "nothing was allocated anew");
}

#[test]
fn the_device_may_be_lost_at_any_step() {
    let (_, _, _, _, faults) = prepare();
    for fault in faults {
        let (gpu, mut vae, latents) = load(MODEL);
        let lose = |step| {
            if step == fault {
                gpu.destroy();
            }
        };
        let result = decode(&mut vae, &latents, &Arc::default(), lose);
        assert!(matches!(result, Err(Error::Device(_))), "step {fault}: {}", said(&result));
        drop(vae);
        assert_eq!(gpu.ledger().current(), Bytes(0), "step {fault} left something");
    }
}
