//! Decodes and encodes on the host: they agree with diffusers, take the memory that was predicted,
//! and give the same bits for every budget and number of threads.

use pollster::block_on;
use wgvae::device::{Cpu, CpuOptions};
use wgvae::{Bytes, Control, DecodeOptions, Device, Latents, LoadOptions, Precision, Vae};

use crate::family::{check_family, checkpoint};
use crate::golden::Golden;
use crate::interpret::assert_same_bits;

fn cpu(threads: usize) -> Cpu {
    Cpu::new(&CpuOptions { threads: Some(threads), ..CpuOptions::default() }).unwrap()
}

#[test]
fn every_network_agrees_with_its_class() {
    for name in [
        "toy_odd",
        "toy_no_attention",
        "toy_flux2",
        "toy_flux2_small_decoder",
        "toy_ideogram4",
        "toy_fibo2",
        "taesd",
        "taesd3",
        "toy_tiny",
        "taef2",
        "toy_wan",
        "toy_wan_one_block",
        "toy_seedvr",
    ] {
        check_family(&Golden::open(name), name, &Device::Cpu(cpu(2)), Precision::Auto);
    }
}

fn decode(cpu: &Cpu, golden: &Golden, budget: Option<Bytes>) -> (Vec<f32>, Bytes) {
    let mut vae = block_on(Vae::load(cpu, &checkpoint(golden), LoadOptions::default())).unwrap();
    let latents = Latents::new(golden.latents()).unwrap();
    let options = DecodeOptions { memory_budget: budget, ..DecodeOptions::default() };
    let decoded = block_on(vae.decode_raw(&latents, &options, &mut Control::default())).unwrap();
    assert_eq!(Some(cpu.ledger().peak()), vae.predicted_peak(), "bytes counted and predicted");
    (decoded.pixels, cpu.ledger().peak())
}

#[test]
fn budgets_and_threads_change_no_bit() {
    let golden = Golden::open("toy_odd");
    let (whole, peak) = decode(&cpu(2), &golden, None);
    for (part, threads) in [(9, 1), (8, 3)] {
        let budget = Bytes(peak.0 / 10 * part);
        let (pixels, peak) = decode(&cpu(threads), &golden, Some(budget));
        assert!(peak <= budget, "{peak} of {budget}");
        assert_same_bits(&pixels, &whole, &format!("within {budget} on {threads} threads"));
    }
}
