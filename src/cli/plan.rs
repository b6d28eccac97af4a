//! `wgvae plan`.

mod budgets;

use wgvae::{
    AutoencoderConfig, DecodeOptions, DeviceLimits, Error, Family, Gpu, GpuOptions, Precision, Result, Size,
    plan_decode,
};

use super::{PlanArgs, PrecisionArg, input, open, report};

/// Plans without opening a device, unless an adapter is named.
pub(super) async fn run(args: &PlanArgs) -> Result<String> {
    let config = config(args).await?;
    let latent_size = latent_size("--size", args.size, config.latent_factor(false))?;
    let limits = limits(args).await?;
    let precision = match (args.precision, &args.adapter) {
        // Without a device nothing is known against half precision.
        (PrecisionArg::Auto, None) => Precision::F16,
        (given, _) => given.into(),
    };
    let options = DecodeOptions {
        output: args.output.into(),
        memory_budget: args.memory_budget,
        parking: args.parking.into(),
        ..DecodeOptions::default()
    };
    let plan = |options: &DecodeOptions| {
        plan_decode(&config, latent_size, &limits, precision.storage(&limits), false, options)
    };
    if !args.budgets.is_empty() {
        return budgets::compare(args, &options, plan);
    }
    let plan = plan(&options)?;
    if args.json { Ok(super::to_json(&report::plan_json(&plan, &limits))) } else { Ok(plan.to_string()) }
}

/// The network. A plan does not depend on the scale of the latents, so it need not be known.
async fn config(args: &PlanArgs) -> Result<AutoencoderConfig> {
    match (&args.model, &args.family) {
        (Some(model), family) => Ok(open(model, family.as_deref(), args.variant).await?.config().clone()),
        (None, Some(family)) => Ok(Family::find(family)?.config()),
        (None, None) => Err(input("plan", "--model or --family", "neither")),
    }
}

/// The latents of a picture of `size` pixels.
pub(super) fn latent_size(flag: &str, size: Size, factor: u32) -> Result<Size> {
    if size.width == 0 || size.height == 0 {
        return Err(input(flag, "at least one pixel each way", size.to_string()));
    }
    if !size.width.is_multiple_of(factor) || !size.height.is_multiple_of(factor) {
        let below = |extent: u32| (extent / factor).max(1) * factor;
        let above = |extent: u32| extent.div_ceil(factor).saturating_mul(factor);
        let smaller = Size { width: below(size.width), height: below(size.height) };
        let larger = Size { width: above(size.width), height: above(size.height) };
        let nearest = if smaller == larger { smaller.to_string() } else { format!("{smaller} or {larger}") };
        return Err(input(flag, format!("multiples of {factor} pixels, such as {nearest}"), size.to_string()));
    }
    Ok(Size { width: size.width / factor, height: size.height / factor })
}

async fn limits(args: &PlanArgs) -> Result<DeviceLimits> {
    let mut limits = if let Some(adapter) = &args.adapter {
        let options = GpuOptions { adapter: Some(adapter.clone()), ..GpuOptions::default() };
        Gpu::request(&options).await?.limits().clone()
    } else if args.limits == "webgpu-default" {
        DeviceLimits { shader_f16: true, ..DeviceLimits::webgpu_default() }
    } else {
        read_limits(&args.limits)?
    };
    limits.shader_f16 &= !args.packed;
    Ok(limits)
}

fn read_limits(path: &str) -> Result<DeviceLimits> {
    let text = std::fs::read_to_string(path)
        .map_err(|source| Error::Io { path: format!("--limits {path} (neither webgpu-default nor a file)"), source })?;
    serde_json::from_str(&text).map_err(|error| Error::Format {
        file: path.to_owned(),
        problem: format!("not the limits of a device (see wgvae adapters --json): {error}"),
    })
}
