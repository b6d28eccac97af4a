//! `wgvae memory`: measures time and memory of decodes or encodes, of images or clips, on this
//! machine's adapters. It also merges the results of several machines.

mod child;
mod job;
mod made_up;
mod measure;
mod model;

use std::path::PathBuf;

use clap::Args;
use wgvae::device::DeviceChoice;
use wgvae::{Bytes, Error, Precision, Result, Size};
use wgvae_media::part_file::check_writable;
use wgvae_memory_report::{html, merge, text};

pub(super) use self::child::COMMAND as JOB_COMMAND;
pub(super) use self::job::{JobArgs, run as run_job};
use super::interrupt::Interrupt;
use super::paths::{NamedPath, check_replaced};
use super::{by_name, parse_bytes, parse_size, stdio};

#[derive(Debug, Args)]
pub(super) struct MemoryArgs {
    /// Models: published names, run with made-up weights (sd15, flux1 and others), demo, files or
    /// folders
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "demo,sd15")]
    models: Vec<String>,
    /// Sizes of the picture in pixels
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = parse_size, default_value = "256x256,512x512")]
    sizes: Vec<Size>,
    /// Frames of each clip: 1 for an image, or 5, 9 and so on of most models for video
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = clap::value_parser!(u64).range(1..), default_value = "1")]
    frames: Vec<u64>,
    /// Measure encodes of pictures of these sizes instead of decodes that make them
    #[arg(long)]
    encode: bool,
    /// Element types of weights and activations
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = by_name::<Precision>(), default_value = "f16,f32")]
    precisions: Vec<Precision>,
    /// Also measure under each of these memory budgets, such as 256MiB,512MiB
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = parse_bytes)]
    budgets: Vec<Bytes>,
    /// Devices to measure; gpu: the adapters; cpu: this machine's own cores; auto: the
    /// adapters, or the cores if there are none
    #[arg(long, value_parser = by_name::<DeviceChoice>(), default_value = "auto")]
    device: DeviceChoice,
    /// Measure only adapters with this in their name, driver or backend, or with this index in
    /// `wgvae adapters` [default: all]
    #[arg(long, value_name = "NAME|INDEX")]
    adapter: Option<String>,
    /// Program to start every measurement through, for example one that sets up another driver
    #[arg(long, value_name = "PROGRAM")]
    through: Option<String>,
    /// JSON file of measurements to write; results/schema/memory-report.schema.json describes it
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Reports to put side by side instead of measuring
    #[arg(
        long,
        value_name = "FILE",
        num_args = 1..,
        conflicts_with_all = ["models", "sizes", "frames", "encode", "precisions", "budgets", "device", "adapter", "through", "output"]
    )]
    merge: Vec<PathBuf>,
    /// HTML page to write: tables and plots, with the estimates of other tools, in one file
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Print the report as JSON; with --merge, all reports
    #[arg(long)]
    json: bool,
}

impl MemoryArgs {
    /// Returns the files to write.
    fn outputs(&self) -> Vec<NamedPath<'_>> {
        let outputs = [("--output", &self.output), ("--html", &self.html)];
        outputs.into_iter().filter_map(|(flag, path)| Some((flag, path.as_deref()?))).collect()
    }
}

/// Measures or merges, then writes the files that were asked for.
pub(super) async fn run(args: &MemoryArgs) -> Result<String> {
    let interrupt = Interrupt::install();
    check_paths(args)?;
    let reports =
        if args.merge.is_empty() { vec![measure::measure(args, &interrupt).await?] } else { merge::read(&args.merge)? };
    let mut files: Vec<(PathBuf, Vec<u8>)> = Vec::new();
    if let (Some(path), [report]) = (&args.output, reports.as_slice()) {
        files.push((path.clone(), format!("{}\n", to_json(report)?).into_bytes()));
    }
    if let Some(path) = &args.html {
        files.push((path.clone(), html::page(&reports)?.into_bytes()));
    }
    interrupt.write_all(&files)?;
    match reports.as_slice() {
        [report] if args.json && args.merge.is_empty() => to_json(report),
        _ if args.json => to_json(&reports),
        _ => Ok(text::table(&reports)),
    }
}

/// Fails early for an output that cannot be written, or that would replace an input or another
/// output.
fn check_paths(args: &MemoryArgs) -> Result<()> {
    let inputs: Vec<NamedPath<'_>> = args.merge.iter().map(|path| ("--merge", path.as_path())).collect();
    let outputs = args.outputs();
    if let Some((flag, _)) = outputs.iter().find(|(_, path)| stdio::is_meant(path)) {
        return Err(Error::input(*flag, "a file (--json prints the report)", "-"));
    }
    check_replaced(&inputs, &outputs)?;
    outputs.iter().try_for_each(|(_, path)| check_writable(path))
}

fn to_json<T: serde::Serialize>(reports: &T) -> Result<String> {
    serde_json::to_string_pretty(reports)
        .map_err(|error| Error::input("report", "numbers that JSON can hold", error.to_string()))
}
