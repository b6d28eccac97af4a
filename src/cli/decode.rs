//! `wgvae decode`.

use std::io::Write as _;

use wgvae::internals::part_file::check_writable;
use wgvae::{Checkpoint, DecodeOptions, Gpu, GpuOptions, LoadOptions, Result, Vae, check_decoder};

use super::interrupt::Interrupt;
use super::output::OutputFiles;
use super::paths::{check_replaced, model_files};
use super::report::Report;
use super::session::decode_all;
use super::{DecodeArgs, DecodeLimits, in_file, latents};

/// Checks everything that can be checked without a GPU first, then loads, decodes and writes.
pub(super) async fn run(args: &DecodeArgs) -> Result<String> {
    let interrupt = Interrupt::install();
    let latents = latents::read(&args.latents, args.tensor.as_deref()).await?;
    let mut files = OutputFiles::new(&args.output, latents.count())?;
    args.report.as_deref().map_or(Ok(()), check_writable)?;
    let checkpoint = args.model.open().await?;
    check_paths(args, &checkpoint, &files)?;
    let unscaled = args.unscaled || latents.are_unscaled();
    let fits = latents.check_channels(checkpoint.config(), unscaled);
    fits.map_err(|error| in_file(error, args.latents.display()))?;
    check_decoder(&checkpoint)?;
    let tiling = args.tiles.tiling(args.tiling, checkpoint.config())?;
    if !unscaled {
        checkpoint.scaled_config()?;
    }

    let gpu = Gpu::request(&GpuOptions {
        adapter: args.adapter.clone(),
        webgpu_default_limits: args.limits == DecodeLimits::WebgpuDefault,
        ..GpuOptions::default()
    })
    .await?;
    let load = LoadOptions {
        precision: args.precision.into(),
        unscaled,
        weights_on_host: args.memory_budget.is_some(),
        ..LoadOptions::default()
    };
    let mut vae = Vae::load(&gpu, &checkpoint, load).await?;
    let options = DecodeOptions {
        output: files.output(),
        profile: args.report.is_some(),
        memory_budget: args.memory_budget,
        parking: args.parking.into(),
        tiling,
    };
    let runs = decode_all(&gpu, &mut vae, &latents, &options, args.repeat, &interrupt, &mut files).await?;
    let report = Report::of_decode(&gpu, &mut vae, &latents, &options, &runs, &files.names()).await?;
    let mut written = files.finish();
    if let Some(path) = &args.report {
        let mut file = interrupt.create(path)?;
        file.write_all(&report.to_bytes()).map_err(|error| file.error(error))?;
        written.push(file);
    }
    interrupt.write(written)?;
    Ok(report.show(args.json))
}

/// Fails if one file of the command line would replace another.
fn check_paths(args: &DecodeArgs, checkpoint: &Checkpoint, files: &OutputFiles) -> Result<()> {
    let names = files.names();
    let inputs: Vec<_> = model_files(checkpoint).chain([("--latents", args.latents.as_path())]).collect();
    let mut outputs: Vec<_> = names.iter().map(|name| ("--output", name.as_path())).collect();
    outputs.extend(args.report.iter().map(|path| ("--report", path.as_path())));
    check_replaced(&inputs, &outputs)
}
