//! Prints every step, buffer and slot of a decode's plan as JSON, without a GPU:
//! `cargo run --release --example plan_steps -- sd15 1024 320 on > plan.json`
//!
//! Arguments: a family, the side of a square image in pixels, then optionally a memory budget in
//! MiB and `on` or `off` for parking. `docs/drawings/make.py` draws these plans. The format is that
//! of the hidden module `plan` and changes without notice.

use wgvae::config::Family;
use wgvae::device::DeviceLimits;
use wgvae::images::Output;
use wgvae::model::networks::decoder;
use wgvae::plan::{Plan, PlanOptions, Weights};
use wgvae::{Bytes, LatentSpace, Size, Storage};

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [family, side, rest @ ..] = arguments.as_slice() else {
        return Err("expected FAMILY SIDE [BUDGET_MIB [on|off]]".into());
    };
    let config = Family::find(family)?.config();
    let side = side.parse::<u32>()? / config.decoded_factor(LatentSpace::Model);
    let limits = DeviceLimits { shader_f16: true, ..DeviceLimits::webgpu_default() };
    let mut options = PlanOptions::new(Storage::F16, Output::Rgba8);
    if let Some(budget) = rest.first() {
        options.memory_budget = Some(Bytes(budget.parse::<u64>()? << 20));
        options.weights = Weights::Host;
        options.parking = rest.get(1).is_some_and(|parking| parking == "on");
    }
    let plan = Plan::new(&decoder(&config, Size { width: side, height: side }, LatentSpace::Model), &limits, &options)?;
    serde_json::to_writer(std::io::stdout().lock(), &plan)?;
    println!();
    Ok(())
}
