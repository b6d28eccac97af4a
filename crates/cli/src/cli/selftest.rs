//! `wgvae selftest`: decodes embedded latents with every set of kernels that the rules can choose,
//! or on the cores with all threads and with one, and compares with diffusers' result.

use clap::Args;
use serde_json::json;
use wgvae::demo;
use wgvae::device::{Device, DeviceChoice, DeviceOptions};
use wgvae::selftest::{self, Selftest, SelftestControl, SelftestElements, SelftestRow};
use wgvae::{GpuOptions, Result};

use super::{Answer, adapters, by_name};

#[derive(Debug, Args)]
pub(super) struct SelftestArgs {
    /// Device to test; gpu: the best adapter, with every set of kernels; cpu: this machine's own
    /// cores; auto: a GPU if there is one, else the cores
    #[arg(long, value_parser = by_name::<DeviceChoice>(), default_value = "auto")]
    device: DeviceChoice,
    /// Adapter to test: part of its name, or its index in `wgvae adapters`
    #[arg(long, value_name = "NAME|INDEX")]
    adapter: Option<String>,
    /// Print the table as JSON
    #[arg(long)]
    json: bool,
}

/// Decodes with each set of kernels, or on the cores. If any result is wrong, the answer is marked
/// as failed; the table still goes to stdout.
pub(super) async fn run(args: &SelftestArgs) -> Result<Answer> {
    let gpu = GpuOptions { adapter: args.adapter.clone(), ..GpuOptions::default() };
    let options = DeviceOptions { choice: args.device, gpu: gpu.clone(), ..DeviceOptions::default() };
    let (checkpoint, reference) = (demo::checkpoint().await?, demo::selftest());
    let mut control = SelftestControl::default();
    let (found, how) = match Device::open(&options).await? {
        Device::Gpu(chosen) => {
            // The self-test opens a device for each set of kernels.
            drop(chosen);
            (selftest::run(&gpu, &checkpoint, &reference, &mut control).await?, "")
        }
        Device::Cpu(cpu) => (
            selftest::run_on_cores(&cpu, &checkpoint, &reference, &mut control).await?,
            ", with all threads, then with one",
        ),
    };
    let text = if args.json { super::to_json(&json!(found)) } else { text(&found, how) };
    Ok(Answer { text, failed: !found.right })
}

fn text(Selftest { adapter, right, rows }: &Selftest, how: &str) -> String {
    let mut lines = vec![format!("{adapter}: embedded latents, 128x128, compared with diffusers' result{how}")];
    lines.extend(rows.iter().map(line));
    lines.push(if *right { "all right" } else { "something is WRONG: please report this table" }.to_owned());
    lines.join("\n")
}

fn line(row: &SelftestRow) -> String {
    let elements = match row.elements {
        SelftestElements::F32 => "f32",
        SelftestElements::F16 => "f16",
        SelftestElements::PackedF16 => "f16 packed",
        SelftestElements::Fast => "fast",
        SelftestElements::FastOnUnits => "fast units",
    };
    let verdict = match row {
        SelftestRow { same_bits: false, .. } => "WRONG: bits differ from the first",
        SelftestRow { right: true, .. } => "right",
        SelftestRow { .. } => "WRONG",
    };
    let (ms, error, most) = (row.seconds * 1e3, row.error, row.most);
    let kernels = adapters::kernels(&row.kernels);
    format!("{elements:<10} {ms:>9.1} ms  off by {error:.1e} of {most:.0e}  {verdict}  {kernels}")
}
