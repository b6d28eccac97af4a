//! Host time for each step of a plan. The decodes use drivers whose launches do nothing, so all
//! time is spent in wgpu, the driver and this crate.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use pollster::block_on;
use serde::{Deserialize, Serialize};
use wgvae::config::Family;
use wgvae::gpu::{GpuBuffer, Input, LoadedWeight, Prepared};
use wgvae::images::Output;
use wgvae::model::networks::decoder;
use wgvae::plan::{Plan, PlanOptions};
use wgvae::{Control, Gpu, GpuOptions, LatentSpace, Size, Storage};

use crate::devices::DEVICES;

const REPORT: &str = "benches/results/host.md";
/// Number of decodes, of which the fastest counts.
const RUNS: u32 = 5;

/// Host times of one device's driver, in microseconds per step.
#[derive(Serialize, Deserialize)]
struct Host {
    driver: String,
    steps: usize,
    submissions: usize,
    /// Time with submissions as large as they get, because the device seems to take no time.
    together: f64,
    /// Time with one submission for each step.
    alone: f64,
}

/// Runs a process for each device, and writes the table of their results.
pub(crate) fn measure(mesa: &Path) -> Result<()> {
    let mut table = String::from(
        "# Host time for a step: `cargo xtask isa --host`\n\n\
         SD 1.5's decoder, 1024x1024, f32, made-up weights. Drivers of GPUs that are not here: launches do nothing, so what is left is recording, binding and submitting by wgvae, wgpu and the driver.\n\
         The fastest of five decodes, divided by the plan's steps.\n\n\
         | device | driver | steps | submissions | us a step | us a step, each submitted by itself |\n|---|---|---|---|---|---|\n",
    );
    for device in &DEVICES {
        let output = device.command(mesa, &std::env::current_exe()?).arg("--host-worker").output()?;
        let errors = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "{}: {}\n{errors}", device.name, output.status);
        let Host { driver, steps, submissions, together, alone } =
            serde_json::from_slice(&output.stdout).with_context(|| format!("{}: {errors}", device.name))?;
        let line = format!("| {} | {driver} | {steps} | {submissions} | {together:.1} | {alone:.1} |\n", device.name);
        eprint!("isa: {line}");
        table += &line;
    }
    std::fs::write(REPORT, table)?;
    eprintln!("isa: wrote {REPORT}");
    Ok(())
}

/// Runs the process of one device.
pub(crate) fn work() -> Result<()> {
    let gpu = block_on(Gpu::request(&GpuOptions::default()))?;
    let family = Family::find("sd15").context("no sd15")?;
    let graph = decoder(&family.config(), Size { width: 128, height: 128 }, LatentSpace::Model);
    // Raw output: values that were never computed would not convert to pixels, but floats are
    // copied unread.
    let plan = Arc::new(Plan::new(&graph, gpu.limits(), &PlanOptions::new(Storage::F32, Output::Raw))?);
    let weights: Vec<GpuBuffer> = plan
        .weights
        .iter()
        .map(|weight| {
            block_on(GpuBuffer::with_data(&gpu, &weight.name, &vec![0; usize::try_from(weight.bytes.0)?]))
                .map_err(Into::into)
        })
        .collect::<Result<_>>()?;
    let mut prepared =
        block_on(Prepared::new(&gpu, Arc::clone(&plan), weights.iter().map(LoadedWeight::Gpu).collect()))?;
    let planes = plan.input();
    let latents = vec![0.0; (planes.size.width * planes.size.height * planes.planes()) as usize];
    let mut fastest = |target: Option<Duration>| -> Result<(f64, usize)> {
        let mut best = (f64::INFINITY, 0);
        for _ in 0..RUNS {
            let mut control = Control { submission_target: target, ..Control::default() };
            let run = block_on(prepared.run(
                &Input::Host(vec![latents.as_slice().into()]),
                &mut control,
                &mut |_, _| Ok(()),
            ))?;
            best = if run.seconds < best.0 { (run.seconds, run.submissions.len()) } else { best };
        }
        Ok((best.0 * 1e6 / plan.steps.len() as f64, best.1))
    };
    let ((together, submissions), (alone, _)) = (fastest(None)?, fastest(Some(Duration::ZERO))?);
    let (driver, steps) = (gpu.adapter().driver.clone(), plan.steps.len());
    serde_json::to_writer(std::io::stdout(), &Host { driver, steps, submissions, together, alone })?;
    Ok(())
}
