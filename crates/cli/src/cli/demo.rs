//! `wgvae demo`.

use wgvae::demo;
use wgvae::device::{Cpu, CpuOptions};
use wgvae::{Checkpoint, DecodeOptions, Device, Error, Gpu, GpuOptions, Latents, LoadOptions, Result};

use super::interrupt::Interrupt;
use super::output::OutputFiles;
use super::prepare::{ElementArgs, load, open_device};
use super::report::Report;
use super::session::Session;
use super::stderr::say;
use super::{DemoArgs, latents, stdio};

/// Decodes the embedded latents as `wgvae decode` would decode a file's.
pub(super) async fn run(args: &DemoArgs) -> Result<String> {
    let interrupt = Interrupt::install();
    let latents = latents::from_source(&demo::latents(), None).await?;
    if stdio::is_meant(&args.output) {
        stdio::check_no_terminal()?;
    }
    let mut files = OutputFiles::new(&args.output, None, None, latents.count())?;
    let checkpoint = demo::checkpoint().await?;

    let both = if args.both { Some(compare(&checkpoint, &latents).await?) } else { None };
    let device = open_device(&args.device, &ElementArgs::AUTO).await?;
    let mut vae = load(&device, &checkpoint, LoadOptions::default()).await?;
    let options = DecodeOptions::default();
    let mut session = Session::new("decode", &device, &interrupt, Some(latents.count().into()));
    session.decode_all(&mut vae, &latents, &options, 1, &mut files).await?;
    let request = options.request(latents.size(), latents.space(vae.config()), files.format());
    let report = Report::of_decode(&device, &mut vae, &request, &session.finish(), &files.names).await?;
    interrupt.write(files.finish())?;
    let on_stderr = stdio::is_meant(&args.output);
    let text = report.show(args.json, on_stderr);
    Ok(match both {
        Some(both) if on_stderr => {
            say(&both);
            text
        }
        Some(both) => format!("{text}\n{both}"),
        None => text,
    })
}

/// Decodes on the machine's cores and with shaders on the best adapter. Returns time and memory of
/// both.
///
/// # Errors
/// If a level of a pixel differs by more than one.
async fn compare(checkpoint: &Checkpoint, latents: &Latents) -> Result<String> {
    let devices =
        [Device::Cpu(Cpu::new(&CpuOptions::default())?), Device::Gpu(Gpu::request(&GpuOptions::default()).await?)];
    let (mut pictures, mut lines) = (Vec::new(), Vec::new());
    for device in devices {
        let mut vae = load(&device, checkpoint, LoadOptions::default()).await?;
        // The first decode compiles.
        vae.decode(latents).await?;
        let decoded = vae.decode(latents).await?;
        let adapter = device.adapter();
        let (seconds, peak) = (decoded.run.seconds, device.ledger().peak());
        lines.push(format!("{} ({}): {seconds:.2} s, {peak}", adapter.name, adapter.backend));
        pictures.push(decoded.pixels);
    }
    let most = pictures[0].iter().zip(&pictures[1]).map(|(one, other)| one.abs_diff(*other)).max().unwrap_or(0);
    if most > 1 {
        return Err(Error::input("the two pictures", "levels at most 1 apart", format!("levels {most} apart")));
    }
    Ok(format!("both ways, levels at most {most} apart:\n{}", lines.join("\n")))
}
