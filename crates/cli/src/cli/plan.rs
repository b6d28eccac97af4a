//! `wgvae plan`.

mod budgets;
mod chart;
mod clip;
mod preview;

use wgvae::config::{AutoencoderConfig, Family};
use wgvae::device::{DeviceKind, DeviceLimits};
use wgvae::{Direction, Error, Gpu, GpuOptions, LatentSpace, Plans, Request, Result, Storage};

use super::clips::parts;
use super::request::{check_weights, request_for};
use super::{PlanArgs, of_flag, open, report};

/// Plans without opening a device, unless an adapter is named.
pub(super) async fn run(args: &PlanArgs) -> Result<String> {
    let operation = if args.encode { Direction::Encode } else { Direction::Decode };
    let config = config(args, operation).await?;
    let request = request_for(operation, "--size", args.size, &config, LatentSpace::Model)?;
    let output = if args.encode { request.output } else { args.output.into() };
    let least_memory = args.least_memory;
    let request = Request { output, least_memory, parking: args.parking, ..request };
    if let Some(family) = preview::mapped_family(args, &config) {
        return preview::show(args, family, request.size);
    }
    let request = Request { size: preview::decoded_size(args, &config, request.size)?, ..request };
    let limits = limits(args).await?;
    let storage = args.precision.storage(&limits);
    if args.packed && storage == Storage::F32 {
        return Err(Error::input("--packed", "--precision f16", "f32, which has no halves to pack"));
    }
    let plan = |request: &Request, memory_budget| {
        wgvae::plan(&config, &Request { memory_budget, ..*request }, &limits, storage)
    };
    if let Some(frames) = args.frames {
        let parts = parts(&config, operation, frames)?;
        let too_many = || Error::input("--frames", "fewer than 2^32 frames of latents", parts.to_string());
        let clip_latents = Some(u32::try_from(parts).ok().ok_or_else(too_many)?);
        let request = Request { clip_latents, ..request.of_clip() };
        return Ok(clip::show(args, frames, parts, &plan(&request, args.memory_budget)?, &limits));
    }
    if !args.budgets.is_empty() {
        return budgets::compare(args, |budget| plan(&request, budget).map(Plans::into_first));
    }
    let plans = plan(&request, args.memory_budget)?;
    if args.json { Ok(super::to_json(&report::plan_json(plans.first(), &limits))) } else { Ok(text(&plans)) }
}

/// Returns the plan with its peak once more in the last line: terminals scroll the first one away.
fn text(plans: &Plans) -> String {
    format!(
        "{plans}predicted peak {}, about {:.2} s on such a device: for comparing plans, not a promise\n",
        plans.peak(),
        plans.predicted_seconds(1)
    )
}

/// Returns the network's configuration, after checking that the model has the weights for
/// `operation`. A plan does not depend on the scale of the latents, so that may be unknown.
async fn config(args: &PlanArgs, operation: Direction) -> Result<AutoencoderConfig> {
    let mut config = match (&args.model, &args.family) {
        (Some(model), family) => {
            let checkpoint = open(model, family.as_deref(), args.variant).await?;
            check_weights(&checkpoint, operation)?;
            checkpoint.config().clone()
        }
        (None, Some(family)) => Family::find(family)?.config(),
        (None, None) => return Err(Error::input("plan", "--model or --family", "neither")),
    };
    if let Some(mode) = args.border.border {
        config.set_border(mode).map_err(|error| of_flag(error, "--border"))?;
    }
    if args.preview_rate {
        config.set_preview_rate().map_err(|error| of_flag(error, "--preview-rate"))?;
    }
    Ok(config)
}

async fn limits(args: &PlanArgs) -> Result<DeviceLimits> {
    let mut limits = if let Some(adapter) = &args.adapter {
        let options = GpuOptions { adapter: Some(adapter.clone()), ..GpuOptions::default() };
        Gpu::request(&options).await?.limits().clone()
    } else if args.limits == "cpu" {
        DeviceLimits::host()
    } else if args.limits == "webgpu-default" {
        DeviceLimits { shader_f16: true, ..DeviceLimits::webgpu_default() }
    } else {
        read_limits(&args.limits)?
    };
    if args.packed && limits.kind == DeviceKind::Host {
        return Err(Error::input("--packed", "the limits of a GPU", "those of the CPU, which has no shaders"));
    }
    limits.shader_f16 &= !args.packed;
    Ok(limits)
}

fn read_limits(path: &str) -> Result<DeviceLimits> {
    let text = std::fs::read_to_string(path).map_err(|source| {
        Error::io(format!("--limits {path} (neither webgpu-default, nor cpu, nor a file)"), source)
    })?;
    serde_json::from_str(&text).map_err(|error| {
        Error::format(path, format!("not the limits of a device (see wgvae adapters --json): {error}"))
    })
}
