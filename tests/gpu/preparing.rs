//! Progress that a device reports while it prepares: weights and kernels, each from nothing to all.

use std::sync::{Arc, Mutex};

use pollster::block_on;
use wgvae::report::Preparing;
use wgvae::{Gpu, GpuOptions, Latents, LoadOptions, Vae};

use crate::decode::{checkpoint, fixture};

/// Reports: done, total, and true if the next item is named.
type Heard = Arc<Mutex<Vec<(u64, u64, bool)>>>;

/// Fails unless `heard` begins with nothing, ends with all, and never decreases. Returns the total.
#[track_caller]
fn from_nothing_to_all(heard: &Heard) -> u64 {
    let heard = std::mem::take(&mut *heard.lock().unwrap());
    let (first, last) = (heard[0], *heard.last().unwrap());
    assert!(first.0 == 0 && first.2 && last.0 == last.1 && !last.2, "{heard:?}");
    assert!(heard.iter().all(|now| now.1 == last.1) && heard.is_sorted_by_key(|now| now.0), "{heard:?}");
    assert!(heard[..heard.len() - 1].iter().all(|now| now.2), "{heard:?}");
    last.1
}

#[test]
fn loading_and_compiling_are_told_from_nothing_to_all() {
    let gpu = block_on(Gpu::request(&GpuOptions::default())).unwrap();
    let (weights, kernels) = (Heard::default(), Heard::default());
    let (of_weights, of_kernels) = (Arc::clone(&weights), Arc::clone(&kernels));
    gpu.watch(Some(Arc::new(move |now: Preparing<'_>| match now {
        Preparing::Weights { done, total, tensor } => {
            of_weights.lock().unwrap().push((done.0, total.0, !tensor.is_empty()));
        }
        Preparing::Kernels { done, total, kernel } => {
            of_kernels.lock().unwrap().push((done as u64, total as u64, !kernel.is_empty()));
        }
    })));
    let fixture = fixture("toy_wide");
    let mut vae = block_on(Vae::load(&gpu, &checkpoint(&fixture.config), LoadOptions::default())).unwrap();
    assert_eq!(from_nothing_to_all(&weights), gpu.ledger().current().0);
    assert!(kernels.lock().unwrap().is_empty());

    let latents = Latents::new(fixture.latents).unwrap();
    let mut decode = || block_on(vae.decode(&latents)).unwrap();
    decode();
    assert_eq!(from_nothing_to_all(&kernels), gpu.compiled().0 as u64);
    // All work is done, so nothing is reported.
    decode();
    assert!(weights.lock().unwrap().is_empty() && kernels.lock().unwrap().is_empty());

    gpu.watch(None);
    block_on(Vae::load(&gpu, &checkpoint(&fixture.config), LoadOptions::default())).unwrap();
    assert!(weights.lock().unwrap().is_empty());
}
