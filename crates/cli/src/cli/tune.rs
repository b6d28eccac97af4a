//! `wgvae tune`.

use clap::Args;
use serde_json::json;
use wgvae::tuning::{Trial, TuneOptions, Tuning};
use wgvae::{Gpu, GpuOptions, Result};

use super::adapters;
use super::tuned::Tuned;

#[derive(Debug, Args)]
pub(super) struct TuneArgs {
    /// Adapter to measure: part of its name, or its index in `wgvae adapters`
    #[arg(long, value_name = "NAME|INDEX")]
    adapter: Option<String>,
    /// Measure, but do not save the result
    #[arg(long)]
    dry_run: bool,
    /// Print the measurements as JSON
    #[arg(long)]
    json: bool,
}

/// Measures the kernels and saves the fastest.
pub(super) async fn run(args: &TuneArgs) -> Result<String> {
    let gpu = Gpu::request(&GpuOptions { adapter: args.adapter.clone(), ..GpuOptions::default() }).await?;
    // Read before measuring: if the file cannot be read, this fails at once and its content is not
    // lost.
    let mut tuned = if args.dry_run { None } else { Some(Tuned::read()?) };
    let tuning = gpu.tune(&TuneOptions::default()).await?;
    if let Some(tuned) = &mut tuned {
        tuned.keep(&gpu, tuning.clone())?;
    }
    if args.json {
        return Ok(super::to_json(&json!({ "device": gpu.tuning_key(), "tuning": tuning })));
    }
    let kept = tuned.map_or_else(|| "not saved".to_owned(), |tuned| format!("saved in {}", tuned.path.display()));
    Ok(format!("{}\n{kept}", text(&gpu, &tuning)))
}

/// Formats one line for each kernel choice that was tried.
fn text(gpu: &Gpu, tuning: &Tuning) -> String {
    let line = |trial: &Trial| {
        let said = match trial {
            Trial { same_bits: false, .. } => "  different bits: not used",
            Trial { kernels, .. } if *kernels == tuning.kernels => "  used",
            Trial { .. } => "",
        };
        format!("{:>9.2} ms  {}{said}", trial.seconds * 1e3, adapters::kernels(&trial.kernels))
    };
    let lines: Vec<String> = tuning.trials.iter().map(line).collect();
    format!("{}: a 3x3 convolution of 256 channels, the rules' kernels first\n{}", gpu.adapter().name, lines.join("\n"))
}
