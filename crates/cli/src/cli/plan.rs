//! `wgvae plan`.

mod budgets;
mod clip;

use wgvae::{
    AutoencoderConfig, Bytes, DecodeOptions, DeviceLimits, EncodeOptions, Error, Family, Gpu, GpuOptions, Precision,
    Result, plan_decode, plan_encode,
};
use wgvae_memory_report::Operation;

use super::task::{Task, check_weights};
use super::{PlanArgs, PrecisionArg, open, report};

/// Plans without opening a device, unless an adapter is named.
pub(super) async fn run(args: &PlanArgs) -> Result<String> {
    let operation = if args.encode { Operation::Encode } else { Operation::Decode };
    let config = config(args, operation).await?;
    let task = Task::new(operation, "--size", args.size, &config, false)?;
    let limits = limits(args).await?;
    let precision = match (args.precision, &args.adapter) {
        // Without a device, nothing speaks against half precision.
        (PrecisionArg::Auto, None) => Precision::F16,
        (given, _) => given.into(),
    };
    let storage = precision.storage(&limits);
    if let Some(frames) = args.frames {
        return clip::plan(args, frames, task, (&config, &limits, storage));
    }
    let plan = |memory_budget: Option<Bytes>| match task {
        Task::Decode(latents) => {
            plan_decode(&config, latents, &limits, storage, false, &decode_options(args, memory_budget))
        }
        Task::Encode(image) => plan_encode(&config, image, &limits, storage, &encode_options(args, memory_budget)),
    };
    if !args.budgets.is_empty() {
        return budgets::compare(args, plan);
    }
    let plan = plan(args.memory_budget)?;
    if args.json { Ok(super::to_json(&report::plan_json(&plan, &limits))) } else { Ok(plan.to_string()) }
}

fn decode_options(args: &PlanArgs, memory_budget: Option<Bytes>) -> DecodeOptions {
    let (output, parking) = (args.output.into(), args.parking.into());
    DecodeOptions { output, memory_budget, parking, ..DecodeOptions::default() }
}

fn encode_options(args: &PlanArgs, memory_budget: Option<Bytes>) -> EncodeOptions {
    EncodeOptions { memory_budget, parking: args.parking.into(), ..EncodeOptions::default() }
}

/// Returns the network's configuration, after checking that the model has the weights for
/// `operation`. A plan does not depend on the scale of the latents, so that may be unknown.
async fn config(args: &PlanArgs, operation: Operation) -> Result<AutoencoderConfig> {
    match (&args.model, &args.family) {
        (Some(model), family) => {
            let checkpoint = open(model, family.as_deref(), args.variant).await?;
            check_weights(&checkpoint, operation)?;
            Ok(checkpoint.config().clone())
        }
        (None, Some(family)) => Ok(Family::find(family)?.config()),
        (None, None) => Err(Error::input("plan", "--model or --family", "neither")),
    }
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
