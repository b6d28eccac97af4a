//! `wgvae selftest`: decodes embedded latents with every set of kernels that the rules can choose,
//! and compares with diffusers' result.

use clap::Args;
use serde_json::json;
use wgvae::demo;
use wgvae::selftest::{self, Selftest, SelftestControl, SelftestElements, SelftestRow};
use wgvae::{GpuOptions, Result};

use super::{Answer, adapters};

#[derive(Debug, Args)]
pub(super) struct SelftestArgs {
    /// Adapter to test: part of its name, or its index in `wgvae adapters`
    #[arg(long, value_name = "NAME|INDEX")]
    adapter: Option<String>,
    /// Print the table as JSON
    #[arg(long)]
    json: bool,
}

/// Decodes with each set of kernels. If any result is wrong, the answer is marked as failed; the
/// table still goes to stdout.
pub(super) async fn run(args: &SelftestArgs) -> Result<Answer> {
    let options = GpuOptions { adapter: args.adapter.clone(), ..GpuOptions::default() };
    let checkpoint = demo::checkpoint().await?;
    let found = selftest::run(&options, &checkpoint, &demo::selftest(), &mut SelftestControl::default()).await?;
    let text = if args.json { super::to_json(&json!(found)) } else { text(&found) };
    Ok(Answer { text, failed: !found.right })
}

fn text(Selftest { adapter, right, rows }: &Selftest) -> String {
    let mut lines = vec![format!("{adapter}: embedded latents, 128x128, compared with diffusers' result")];
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
