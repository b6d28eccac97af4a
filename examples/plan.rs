//! Prints the GPU memory of one model's decodes at several sizes, without a GPU:
//! `cargo run --example plan -- sd15`

use wgvae::config::Family;
use wgvae::device::DeviceLimits;
use wgvae::{LatentSpace, Plans, Request, Result, Size, Storage};

fn main() -> Result<()> {
    let name = std::env::args().nth(1).unwrap_or_else(|| "sd15".to_owned());
    let config = Family::find(&name)?.config();
    // These limits hold in every WebGPU browser.
    let limits = DeviceLimits::webgpu_default();
    println!("{name}, halves, within WebGPU's default limits");
    for side in [256, 512, 1024, 2048] {
        let side = side / config.decoded_factor(LatentSpace::Model);
        let latents = Size { width: side, height: side };
        let plan = wgvae::plan(&config, &Request::decode(latents, LatentSpace::Model), &limits, Storage::PackedF16)
            .map(Plans::into_first)?;
        println!(
            "{:>10}: {} GPU memory, of that {} weights; {} G multiply-adds in {} steps",
            plan.result.size.to_string(),
            plan.memory.peak(),
            plan.memory.weights,
            plan.macs() / 1_000_000_000,
            plan.steps.len()
        );
    }
    Ok(())
}
