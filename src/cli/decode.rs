//! `wgvae decode`.

use std::io::Write as _;
use std::path::Path;

use wgvae::internals::part_file::check_writable;
use wgvae::{Checkpoint, DecodeOptions, Gpu, GpuOptions, LoadOptions, Result, Vae, check_decoder};

use super::interrupt::Interrupt;
use super::output::OutputFiles;
use super::report::Report;
use super::session::decode_all;
use super::{DecodeArgs, DecodeLimits, input, latents};

/// Checks everything that can be checked without a GPU first, then loads, decodes and writes.
pub(super) async fn run(args: &DecodeArgs) -> Result<String> {
    let interrupt = Interrupt::install();
    let latents = latents::read(&args.latents, args.tensor.as_deref()).await?;
    let mut files = OutputFiles::new(&args.output, latents.count())?;
    args.report.as_deref().map_or(Ok(()), check_writable)?;
    let checkpoint = args.model.open().await?;
    check_paths(args, &checkpoint, &files)?;
    let unscaled = args.unscaled || latents.are_unscaled();
    let channels = checkpoint.config().channels(unscaled);
    if channels != latents.channels() {
        return Err(input(
            format!("latents in {}", args.latents.display()),
            format!("{channels} channels, as the model in {} has", args.model.model.display()),
            format!("{} channels", latents.channels()),
        ));
    }
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
    let report = Report::new(&gpu, &mut vae, &latents, &options, &runs, &files.names()).await?;
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
    let inputs = [("--latents", args.latents.as_path())].into_iter();
    let inputs = inputs.chain(checkpoint.files().map(|(name, _)| ("--model", Path::new(name))));
    let outputs: Vec<(&str, &Path)> = names.iter().map(|name| ("--output", name.as_path())).collect();
    let taken: Vec<(&str, &Path)> = inputs.chain(outputs.iter().copied()).collect();
    for (flag, path) in outputs.into_iter().chain(args.report.iter().map(|path| ("--report", path.as_path()))) {
        if let Some((other, _)) = taken.iter().find(|(other, taken)| *other != flag && same(taken, path)) {
            return Err(input(flag, format!("another file than that of {other}"), path.display().to_string()));
        }
    }
    Ok(())
}

/// Whether both paths lead to one file, which need not exist yet.
fn same(left: &Path, right: &Path) -> bool {
    let whole = |path: &Path| path.canonicalize().or_else(|_| std::path::absolute(path)).ok();
    left == right || whole(left).is_some_and(|left| Some(left) == whole(right))
}
