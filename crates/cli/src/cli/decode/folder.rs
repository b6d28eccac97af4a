//! `wgvae decode` of a folder: all of its files of latents, with one load of the model.

use std::path::{Path, PathBuf};

use wgvae::config::AutoencoderConfig;
use wgvae::internals::clips::{is_clip, latents_shape};
use wgvae::{Checkpoint, Error, Latents, LoadOptions, Named as _, Result};

use super::DecodeArgs;
use crate::cli::folder::files_of;
use crate::cli::interrupt::Interrupt;
use crate::cli::latents;
use crate::cli::output::{FormatArg, OutputFiles, holds_all};
use crate::cli::output_names::{Needs, OutputNames};
use crate::cli::prepare::{load, open_device};
use crate::cli::report::Report;
use crate::cli::session::Session;
use crate::cli::tally::Tally;

/// Decode of one file.
struct Job {
    latents: PathBuf,
    /// Number of images in the file.
    images: usize,
    outputs: Vec<PathBuf>,
}

/// Checks everything that needs no GPU first, then loads the model, and decodes one file after the
/// other. The pictures of a file appear when all of them are complete.
pub(super) async fn run(args: &DecodeArgs, interrupt: &Interrupt) -> Result<String> {
    args.check_image()?;
    let names = output_names(args)?;
    let inputs = files_of("--latents", &args.latents, latents::ENDINGS)?;
    let checkpoint = args.checkpoint(None).await?;
    let jobs = jobs(args, &names, &inputs, checkpoint.config()).await?;
    let outputs: Vec<PathBuf> = jobs.iter().flat_map(|job| job.outputs.clone()).collect();
    args.check_paths(&checkpoint, &inputs, &outputs)?;
    checkpoint.check_decoder()?;
    let tiling = args.tiles.tiling(args.tiling, checkpoint.config())?;
    names.create_folder()?;
    let (first, files) = open(args, &jobs[0], &checkpoint).await?;
    files.say_lost_alpha(checkpoint.config().out_channels);

    let device = open_device(&args.device, &args.elements).await?;
    let options = args.options(tiling);
    let format = files.format();
    let mut request = options.request(first.size(), first.space(checkpoint.config()), format);
    let mut vae = load(&device, &checkpoint, LoadOptions::for_request(&request, args.elements.precision)).await?;
    let total = jobs.iter().map(|job| job.images as u64 * u64::from(args.repeat)).sum();
    let mut session = Session::new("decode", &device, interrupt, Some(total));
    let (mut tally, mut sizes) = (Tally::begin(&args.output, jobs.len()), Vec::new());
    for job in &jobs {
        let decode = async {
            let (latents, mut files) = open(args, job, &checkpoint).await?;
            session.decode_all(&mut vae, &latents, &options, args.repeat, &mut files).await?;
            interrupt.write(files.finish())?;
            Ok::<_, Error>((latents.size(), latents.space(checkpoint.config())))
        };
        let (size, space) = decode.await.inspect_err(|_| tally.stopped_at(&job.latents))?;
        request = options.request(size, space, format);
        sizes.push(vae.config().image_size(size, space));
        tally.add(job.images);
    }
    tally.finish();
    let report = Report::of_folder(&device, &mut vae, &request, session, &sizes, &outputs).await?;
    let facts = args.report.iter().map(|path| (path.clone(), report.to_bytes()));
    interrupt.write_all(&facts.collect::<Vec<_>>())?;
    Ok(report.show(args.json, false))
}

/// Returns the rule for the names of the output files.
fn output_names(args: &DecodeArgs) -> Result<OutputNames> {
    if args.format == Some(FormatArg::Y4m) {
        let expected = "one of png, jpg, webp, exr, npy, safetensors, for the files of a folder";
        return Err(Error::input("--format", expected, FormatArg::Y4m.name()));
    }
    let endings = (args.format.map(FormatArg::name), FormatArg::Png.name());
    OutputNames::of(&args.output, endings, true)?.ok_or_else(|| {
        let expected = "a folder, or a pattern such as pictures/%s.png, because --latents is a folder";
        Error::input("--output", expected, args.output.display().to_string())
    })
}

/// Reads the headers of `inputs`, and names their outputs.
async fn jobs(
    args: &DecodeArgs,
    names: &OutputNames,
    inputs: &[PathBuf],
    config: &AutoencoderConfig,
) -> Result<Vec<Job>> {
    let mut images = Vec::new();
    for input in inputs {
        images.push(count(args, input, config).await?);
    }
    // An array holds all images of its file.
    let one_for_all = holds_all(&names.first(&inputs[0]), args.bit_depth)?;
    let needed: Vec<Needs<'_>> = inputs
        .iter()
        .zip(&images)
        .map(|(input, images)| (input.as_path(), if one_for_all { 1 } else { *images }))
        .collect();
    let outputs = names.assign(&needed)?;
    let jobs = inputs.iter().zip(images).zip(outputs);
    Ok(jobs.map(|((latents, images), outputs)| Job { latents: latents.clone(), images, outputs }).collect())
}

/// Returns the number of images in the file of latents at `input`, by its header.
async fn count(args: &DecodeArgs, input: &Path, config: &AutoencoderConfig) -> Result<usize> {
    let source = latents::open(input, args.tensor.as_deref())?;
    let shape = latents_shape(&*source, args.tensor.as_deref()).await?;
    if is_clip(&shape) && config.has_time() {
        let expected = "latents of images in every file of a folder (decode clips one by one)";
        return Err(Error::input("--latents", expected, format!("a clip in {}", input.display())));
    }
    let images = match *shape.as_slice() {
        // The decode of the file fails.
        _ if shape.contains(&0) => 1,
        [n, _, layers, _, _] => n.saturating_mul(layers),
        [n, _, _, _] => n,
        _ => 1,
    };
    Ok(usize::try_from(images).unwrap_or(usize::MAX))
}

/// Reads the latents of a job for the model, and prepares its output files.
async fn open(args: &DecodeArgs, job: &Job, checkpoint: &Checkpoint) -> Result<(Latents, OutputFiles)> {
    let latents = latents::read(&job.latents, args.tensor.as_deref()).await?;
    let latents = args.fitted(latents, &job.latents, checkpoint.config())?;
    checkpoint.check_space(latents.space(checkpoint.config()))?;
    Ok((latents, OutputFiles::named(job.outputs.clone(), args.bit_depth, job.images)?))
}
