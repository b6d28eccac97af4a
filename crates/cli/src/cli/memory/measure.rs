//! Measurement loop over adapters, models, precisions, sizes, frames and budgets. Predicts each
//! decode or encode here, and has a child process measure it.

use wgvae::config::AutoencoderConfig;
use wgvae::device::DeviceLimits;
use wgvae::report::Plan;
use wgvae::{Bytes, Checkpoint, Direction, Error, LatentSpace, Plans, Precision, Result, Size, Storage};
use wgvae_memory_report::{Machine, Measured, Measurement, MemoryReport, Predicted, SCHEMA, States, VERSION};

use super::MemoryArgs;
use super::child::{Numbered, ask, devices};
use super::job::{Answer, Job, Request};
use super::model::Model;
use crate::cli::clips::parts;
use crate::cli::interrupt::Interrupt;
use crate::cli::paths::{NamedPath, check_replaced, model_files};
use crate::cli::request::{check_weights, request_for};
use crate::cli::stderr::Phase;

/// Model of the command line, after opening it once.
struct Candidate {
    argument: String,
    model: Model,
    config: AutoencoderConfig,
}

/// One decode or encode to predict and measure.
struct Case<'a> {
    candidate: &'a Candidate,
    precision: Precision,
    size: Size,
    /// Frames of the clip; 1 for an image.
    frames: u64,
    request: wgvae::Request,
}

/// Measures all combinations that `args` ask for. A failure becomes a row with its error. Only
/// wrong arguments and Ctrl-C end the loop.
pub(super) async fn measure(args: &MemoryArgs, interrupt: &Interrupt) -> Result<MemoryReport> {
    let operation = if args.encode { Direction::Encode } else { Direction::Decode };
    let mut candidates = Vec::new();
    for argument in &args.models {
        let model = Model::find(argument)?;
        let checkpoint = model.open().await?;
        check(&checkpoint, operation, &args.frames)?;
        let files: Vec<NamedPath<'_>> = model_files(&checkpoint).map(|(_, path)| ("--models", path)).collect();
        check_replaced(&files, &args.outputs())?;
        candidates.push(Candidate { argument: argument.clone(), model, config: checkpoint.config().clone() });
    }
    let found = devices(args.device, args.adapter.as_deref(), args.through.as_deref(), interrupt)?;
    let cases = cases(args, operation, &candidates)?;
    let phase = Phase::begin("measure");
    let (bar, total) = (phase.bar(), (cases.len() * found.len()) as u64);
    let mut measurements = Vec::new();
    for (index, device) in found.iter().enumerate() {
        for case in &cases {
            bar.show(measurements.len() as u64, total, &format!("{} on {}", case.name(), device.1.name));
            measurements.push(row(index, device, case, args.through.as_deref(), interrupt)?);
        }
    }
    phase.end();
    Ok(MemoryReport {
        schema: SCHEMA.to_owned(),
        version: VERSION,
        wgvae: env!("CARGO_PKG_VERSION").to_owned(),
        machine: Machine {
            os: std::env::consts::OS.to_owned(),
            arch: std::env::consts::ARCH.to_owned(),
            cpus: std::thread::available_parallelism().map_or(1, std::num::NonZero::get),
        },
        adapters: found.into_iter().map(|(_, adapter)| adapter).collect(),
        measurements,
    })
}

/// Fails for a model without the weights for these numbers of frames, and for numbers that its
/// clips cannot have.
fn check(checkpoint: &Checkpoint, operation: Direction, frames: &[u64]) -> Result<()> {
    if frames.contains(&1) {
        check_weights(checkpoint, operation)?;
    }
    let clips: Vec<u64> = frames.iter().copied().filter(|frames| *frames > 1).collect();
    for frames in &clips {
        parts(checkpoint.config(), operation, *frames)?;
    }
    if clips.is_empty() { Ok(()) } else { checkpoint.check_clips(operation.into()) }
}

/// Returns every combination, in the order of the arguments.
fn cases<'a>(args: &MemoryArgs, operation: Direction, candidates: &'a [Candidate]) -> Result<Vec<Case<'a>>> {
    let mut cases = Vec::new();
    for candidate in candidates {
        for &precision in &args.precisions {
            for &size in &args.sizes {
                // The space of the latents does not change time or memory.
                let space = LatentSpace::from_unscaled(candidate.config.takes_own_latents());
                let image = request_for(operation, "--sizes", size, &candidate.config, space)?;
                for &frames in &args.frames {
                    let budgets = std::iter::once(None).chain(args.budgets.iter().copied().map(Some));
                    let request = if frames > 1 {
                        let clip_latents = u32::try_from(parts(&candidate.config, operation, frames)?).ok();
                        wgvae::Request { clip_latents, ..image.of_clip() }
                    } else {
                        image
                    };
                    cases.extend(budgets.map(|memory_budget| {
                        let request = wgvae::Request { memory_budget, ..request };
                        Case { candidate, precision, size, frames, request }
                    }));
                }
            }
        }
    }
    if cases.is_empty() {
        return Err(Error::input("memory", "at least one model, size and precision", "none"));
    }
    Ok(cases)
}

impl Case<'_> {
    fn is_clip(&self) -> bool {
        self.frames > 1
    }

    /// Returns a name for the progress bar.
    fn name(&self) -> String {
        let name = format!("{} {}", self.candidate.argument, self.size);
        if self.is_clip() { format!("{name}, {} frames", self.frames) } else { name }
    }
}

fn row(
    index: usize,
    (number, adapter): &Numbered,
    case: &Case<'_>,
    through: Option<&str>,
    interrupt: &Interrupt,
) -> Result<Measurement> {
    let storage = case.precision.storage(&adapter.limits);
    let (predicted, outcome) = match predict(case, &adapter.limits, storage) {
        Err(error) => (None, Err(error.to_string())),
        Ok(predicted) => (Some(predicted), run(*number, case, through, interrupt)?),
    };
    let (measured, error) = match outcome {
        Ok(measured) => (Some(measured), None),
        Err(error) => (None, Some(error)),
    };
    Ok(Measurement {
        adapter: index,
        model: case.candidate.model.name(),
        weights: case.candidate.model.weights(),
        operation: case.request.direction,
        width: case.size.width,
        height: case.size.height,
        frames: case.is_clip().then_some(case.frames),
        storage,
        budget: case.request.memory_budget,
        predicted,
        measured,
        error,
    })
}

/// Predicts the memory of the plan that a child process will follow.
fn predict(case: &Case<'_>, limits: &DeviceLimits, storage: Storage) -> Result<Predicted> {
    let config = &case.candidate.config;
    let plans = wgvae::plan(config, &case.request, limits, storage)?;
    if !case.is_clip() {
        return Ok(predicted(plans.first()));
    }
    Ok(predicted_of_clip(&plans, parts(config, case.request.direction, case.frames)?))
}

/// Has a child process measure the case. Returns its measurement, or the reason why it failed.
fn run(
    adapter: Option<usize>,
    case: &Case<'_>,
    through: Option<&str>,
    interrupt: &Interrupt,
) -> Result<std::result::Result<Measured, String>> {
    let job = Job {
        adapter,
        model: case.candidate.argument.clone(),
        request: case.request,
        frames: case.frames,
        precision: case.precision,
    };
    Ok(match ask(&Request::Measure(job), through, interrupt)? {
        Answer::Measured(measured) => Ok(measured),
        Answer::Failed(reason) | Answer::NoAdapter(reason) => Err(reason),
        Answer::Adapters(_) | Answer::Cores(_) => Err("the process listed devices instead of measuring".to_owned()),
    })
}

fn predicted(plan: &Plan) -> Predicted {
    let memory = plan.memory;
    let peak = memory.peak();
    Predicted {
        peak,
        weights: memory.weights,
        slots: memory.slots,
        parameters: memory.params,
        // All other memory is staging: it moves data between host and device.
        staging: Bytes(peak.0 - memory.weights.0 - memory.slots.0 - memory.params.0 - memory.states.0),
        host: plan.host_bytes(),
        transferred: plan.transferred(),
        states: None,
    }
}

/// Predicts a clip from the part with the largest peak. `transferred` is the sum over all `parts`.
fn predicted_of_clip(plans: &Plans, parts: u64) -> Predicted {
    let hardest = if plans.first().memory.peak() < plans.peak() { plans.later() } else { plans.first() };
    Predicted {
        host: plans.host_bytes(),
        transferred: plans.transferred(parts),
        states: Some(States { total: plans.state_bytes(), gpu: hardest.memory.states }),
        ..predicted(hardest)
    }
}
