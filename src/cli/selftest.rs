//! `wgvae selftest`: embedded latents, decoded with every set of kernels that the rules can give, beside what diffusers made of them.

use std::time::Instant;

use clap::Args;
use serde::Serialize;
use serde_json::json;
use wgvae::kernels::choice::Choice;
use wgvae::{
    Control, DecodeOptions, DeviceKind, Gpu, GpuOptions, LoadOptions, Output, Pixels, Precision, Result, Vae, Vendor,
    read_images,
};

use super::{Answer, adapters, latents};
use crate::demo;

/// One of each set of kernels that the rules can give.
const SETS: [(DeviceKind, Vendor); 4] = [
    (DeviceKind::Cpu, Vendor::Other),
    (DeviceKind::Gpu, Vendor::Nvidia),
    (DeviceKind::Gpu, Vendor::Other),
    (DeviceKind::Gpu, Vendor::Arm),
];
/// Largest difference to diffusers' f32, as a part of the largest value: what the tests of this crate allow, too. The reference is stored as halves.
const MOST_F32: f32 = 6e-4;
const MOST_F16: f32 = 8e-3;
const MOST_FAST: f32 = 1.6e-2;

#[derive(Debug, Args)]
pub(super) struct SelftestArgs {
    /// Adapter to test: part of its name, or its index in `wgvae adapters`
    #[arg(long, value_name = "NAME|INDEX")]
    adapter: Option<String>,
    /// Print the table as JSON
    #[arg(long)]
    json: bool,
}

/// How elements are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Elements {
    F32,
    F16,
    /// Two halves in 32 bits, as on devices without `shader-f16`.
    PackedF16,
    /// Halves, and halves within convolutions, too.
    Fast,
    /// The same, multiplied on matrix units.
    FastOnUnits,
}

impl Elements {
    const ALL: [Self; 5] = [Self::F32, Self::F16, Self::PackedF16, Self::Fast, Self::FastOnUnits];

    /// The largest difference to diffusers that is right.
    fn most(self) -> f32 {
        match self {
            Self::F32 => MOST_F32,
            Self::F16 | Self::PackedF16 => MOST_F16,
            Self::Fast | Self::FastOnUnits => MOST_FAST,
        }
    }

    fn precision(self) -> Precision {
        match self {
            Self::F32 => Precision::F32,
            Self::F16 | Self::PackedF16 => Precision::F16,
            Self::Fast | Self::FastOnUnits => Precision::Fast,
        }
    }
}

/// One decode.
#[derive(Debug, Serialize)]
struct Row {
    kernels: Choice,
    elements: Elements,
    /// The second decode, when all is compiled.
    seconds: f64,
    /// The largest difference to the reference / its largest value.
    error: f32,
    /// The most that is right.
    most: f32,
    /// Whether the result is that of the first set of kernels with these elements, to the bit.
    same_bits: bool,
}

impl Row {
    fn is_right(&self) -> bool {
        self.same_bits && self.error <= self.most
    }
}

/// Decodes with each. Fails, with the table on stdout, where any is wrong.
pub(super) async fn run(args: &SelftestArgs) -> Result<Answer> {
    let reference = read_images(&demo::selftest(), Some("image")).await?;
    let mut rows: Vec<Row> = Vec::new();
    let (mut name, mut has_units) = (String::new(), false);
    for elements in Elements::ALL {
        let matrix_units = elements == Elements::FastOnUnits;
        if matrix_units && !has_units {
            continue;
        }
        let mut first: Option<Vec<f32>> = None;
        for kernels_of in SETS {
            let options = GpuOptions {
                adapter: args.adapter.clone(),
                kernels_of: Some(kernels_of),
                without_shader_f16: elements == Elements::PackedF16,
                matrix_units,
                ..GpuOptions::default()
            };
            let gpu = Gpu::request(&options).await?;
            name.clone_from(&gpu.adapter().name);
            has_units = gpu.adapter().matrix_units.is_some();
            if matches!(elements, Elements::F16 | Elements::Fast) && !gpu.limits().shader_f16 {
                continue;
            }
            let (seconds, values) = decode(&gpu, elements).await?;
            let same_bits = first.as_ref().is_none_or(|first| same_bits(first, &values));
            let most = elements.most();
            let error = largest_difference(&values, &reference.data);
            rows.push(Row { kernels: *gpu.kernels(), elements, seconds, error, most, same_bits });
            first.get_or_insert(values);
        }
    }
    let right = rows.iter().all(Row::is_right);
    let text = if args.json {
        super::to_json(&json!({ "adapter": name, "right": right, "rows": rows }))
    } else {
        text(&name, &rows, right)
    };
    Ok(Answer { text, failed: !right })
}

/// Seconds of the second decode, and its result: `[3, h, w]`.
async fn decode(gpu: &Gpu, elements: Elements) -> Result<(f64, Vec<f32>)> {
    let precision = elements.precision();
    let checkpoint = demo::checkpoint().await?;
    let mut vae = Vae::load(gpu, &checkpoint, LoadOptions { precision, ..LoadOptions::default() }).await?;
    let latents = latents::from_source(&demo::selftest(), Some("latents")).await?;
    let options = DecodeOptions { output: Output::Raw, ..DecodeOptions::default() };
    vae.decode(&latents, 0, &options, &mut Control::default()).await?;
    let start = Instant::now();
    let decoded = vae.decode(&latents, 0, &options, &mut Control::default()).await?;
    let seconds = start.elapsed().as_secs_f64();
    let Pixels::Raw(values) = decoded.pixels else { unreachable!("floats were asked for") };
    Ok((seconds, values))
}

fn same_bits(one: &[f32], other: &[f32]) -> bool {
    one.len() == other.len() && one.iter().zip(other).all(|(one, other)| one.to_bits() == other.to_bits())
}

/// The largest difference / the largest value wanted; infinite where sizes differ or something is no number.
fn largest_difference(found: &[f32], wanted: &[f32]) -> f32 {
    let pairs = found.iter().zip(wanted);
    if found.len() != wanted.len() || pairs.clone().any(|(found, wanted)| (found - wanted).is_nan()) {
        return f32::INFINITY;
    }
    let largest = wanted.iter().fold(0.0_f32, |largest, value| largest.max(value.abs()));
    pairs.fold(0.0_f32, |difference, (found, wanted)| difference.max((found - wanted).abs())) / largest
}

fn text(name: &str, rows: &[Row], right: bool) -> String {
    let mut lines = vec![format!("{name}: embedded latents, 128x128, beside what diffusers made of them")];
    for row in rows {
        let elements = match row.elements {
            Elements::F32 => "f32",
            Elements::F16 => "f16",
            Elements::PackedF16 => "f16 packed",
            Elements::Fast => "fast",
            Elements::FastOnUnits => "fast units",
        };
        let verdict = match row {
            Row { same_bits: false, .. } => "WRONG: other bits than the first",
            Row { .. } if row.is_right() => "right",
            Row { .. } => "WRONG",
        };
        let (ms, error, most) = (row.seconds * 1e3, row.error, row.most);
        let kernels = adapters::kernels(&row.kernels);
        lines.push(format!("{elements:<10} {ms:>9.1} ms  off by {error:.1e} of {most:.0e}  {verdict}  {kernels}"));
    }
    lines.push(if right { "all right".to_owned() } else { "something is WRONG: please report this table".to_owned() });
    lines.join("\n")
}
