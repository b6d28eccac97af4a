//! `wgvae decode`.

use std::path::Path;

use wgvae::internals::image_file::check_writable;
use wgvae::{DecodeOptions, Gpu, GpuOptions, LoadOptions, Result, Vae};

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
    check_paths(args, &files)?;
    let checkpoint = args.model.open().await?;
    let channels = checkpoint.config().latent_channels;
    if channels != latents.channels() {
        return Err(input(
            format!("latents in {}", args.latents.display()),
            format!("{channels} channels, as the model in {} has", args.model.model.display()),
            format!("{} channels", latents.channels()),
        ));
    }

    let gpu = Gpu::request(&GpuOptions {
        adapter: args.adapter.clone(),
        webgpu_default_limits: args.limits == DecodeLimits::WebgpuDefault,
    })
    .await?;
    let load = LoadOptions { precision: args.precision.into(), unscaled: args.unscaled };
    let mut vae = Vae::load(&gpu, &checkpoint, load).await?;
    let options = DecodeOptions { output: files.output(), profile: args.report.is_some() };
    let runs = decode_all(&gpu, &mut vae, &latents, &options, args.repeat, &interrupt, &mut files).await?;
    let report = Report::new(&gpu, &mut vae, &latents, &options, &runs, &files.names()).await?;
    let mut written = files.finish()?;
    written.extend(args.report.iter().map(|path| (path.clone(), report.to_bytes())));
    interrupt.write(&written)?;
    Ok(report.show(args.json))
}

/// Fails if the report cannot be written, or if one file of the command line would replace another.
fn check_paths(args: &DecodeArgs, files: &OutputFiles) -> Result<()> {
    let mut taken = vec![("--latents", args.latents.as_path()), ("--model", args.model.model.as_path())];
    let names = files.names();
    taken.extend(names.iter().map(|name| ("--output", name.as_path())));
    let outputs = names.iter().map(|name| ("--output", name.as_path()));
    for (flag, path) in outputs.chain(args.report.iter().map(|path| ("--report", path.as_path()))) {
        if let Some((other, _)) = taken.iter().find(|(other, taken)| *other != flag && same(taken, path)) {
            return Err(input(flag, format!("another file than {other}"), path.display().to_string()));
        }
    }
    args.report.as_deref().map_or(Ok(()), check_writable)
}

fn same(left: &Path, right: &Path) -> bool {
    left == right || left.canonicalize().is_ok_and(|left| right.canonicalize().is_ok_and(|right| left == right))
}
