//! The facts about a plan and about decodes and encodes, as JSON and as text.

use std::path::PathBuf;

use serde_json::{Value, json};
use wgvae::{Bytes, DecodeOptions, DeviceLimits, EncodeOptions, Gpu, Latents, Plan, Result, Size, Vae};

use super::images::Source;
use super::session::{Run, Session};
use super::tiling::{tiles_text, tiling_json};

/// The facts about a plan, and the limits it was made for.
pub(super) fn plan_json(plan: &Plan, limits: &DeviceLimits) -> Value {
    let mut facts = json!(plan.facts());
    facts["limits"] = json!(limits);
    facts
}

/// What was decoded or encoded, on what, and what it took.
#[derive(Debug)]
pub(super) struct Report {
    facts: Value,
    text: String,
}

/// What a report is of.
struct Subject {
    /// `decoded` or `encoded`.
    done: &'static str,
    /// The name of the list of runs.
    runs: &'static str,
    /// What follows the files' names.
    what: String,
    /// Facts that only such a report has.
    facts: Value,
}

impl Report {
    /// Collects the facts of decodes. To be called while the buffers of the last exist: the allocator is asked now.
    pub(super) async fn of_decode(
        gpu: &Gpu,
        vae: &mut Vae,
        latents: &Latents,
        options: &DecodeOptions,
        runs: &[Run],
        files: &[PathBuf],
    ) -> Result<Self> {
        let load_seconds = vae.load_seconds();
        let subject = Subject {
            done: "decoded",
            runs: "decodes",
            what: format!("({}){}", vae.image_size(latents), tiles_text(options.tiling, latents.size())),
            facts: json!({ "tiling": tiling_json(options.tiling, vae.config(), latents.size()) }),
        };
        let plan = vae.prepare(latents.size(), options).await?;
        Ok(Self::new(gpu, load_seconds, plan, plan.memory.peak(), &subject, runs, files))
    }

    /// Collects the facts of encodes, the plan being that of the last, the memory that of the largest. To be called while the buffers of that exist.
    pub(super) async fn of_encode(
        gpu: &Gpu,
        vae: &mut Vae,
        images: &[Source],
        options: &EncodeOptions,
        session: Session<'_>,
        files: &[PathBuf],
    ) -> Result<Self> {
        let load_seconds = vae.load_seconds();
        let predicted = session.predicted();
        let size = images.last().map_or(Size { width: 0, height: 0 }, |image| image.size);
        let same = images.iter().all(|image| image.size == size);
        let count: u32 = images.iter().map(|image| image.count).sum();
        let subject = Subject {
            done: "encoded",
            runs: "encodes",
            what: format!(
                "(of {count} image{}{})",
                if count == 1 { "" } else { "s" },
                if same { format!(", {size}") } else { String::new() }
            ),
            facts: json!({ "images": images }),
        };
        let plan = vae.prepare_encode(size, options).await?;
        Ok(Self::new(gpu, load_seconds, plan, predicted, &subject, &session.finish(), files))
    }

    fn new(
        gpu: &Gpu,
        load_seconds: f64,
        plan: &Plan,
        predicted: Bytes,
        subject: &Subject,
        runs: &[Run],
        files: &[PathBuf],
    ) -> Self {
        let allocator = gpu.allocator_bytes();
        let measured = gpu.ledger().peak();
        let (kernels, compile_time) = gpu.compiled();
        let seconds = median(runs);
        let adapter = gpu.adapter();
        let mut facts = json!({
            "files": files,
            "predicted_peak_bytes": predicted,
            "fallback": runs.iter().find_map(|run| run.fallback.as_ref()),
            "measured_peak_bytes": measured,
            "allocator_allocated_bytes": allocator.map(|(allocated, _)| allocated),
            "allocator_reserved_bytes": allocator.map(|(_, reserved)| reserved),
            "seconds": seconds,
            "load_seconds": load_seconds,
            "compile_seconds": compile_time.as_secs_f64(),
            "kernels_compiled": kernels,
            "driver": adapter.driver,
            "adapter": adapter,
            "plan": plan_json(plan, gpu.limits()),
            "stages": stages_json(plan, runs),
        });
        facts[subject.runs] = json!(runs);
        if let (Value::Object(facts), Value::Object(own)) = (&mut facts, &subject.facts) {
            facts.extend(own.clone());
        }
        let text = format!(
            "wrote {} {}\n\
             {} in {seconds:.2} s{} on {} ({}); loaded in {load_seconds:.2} s, compiled {kernels} kernels in {:.2} s\n\
             GPU memory at its peak: {predicted} predicted, {measured} measured",
            names(files),
            subject.what,
            subject.done,
            if runs.len() > 1 { format!(" (median of {})", runs.len()) } else { String::new() },
            adapter.name,
            adapter.backend,
            compile_time.as_secs_f64(),
        );
        Self { facts, text }
    }

    /// For a file.
    pub(super) fn to_bytes(&self) -> Vec<u8> {
        format!("{:#}\n", self.facts).into_bytes()
    }

    /// For stdout.
    pub(super) fn show(&self, json: bool) -> String {
        if json { super::to_json(&self.facts) } else { self.text.clone() }
    }
}

/// GPU time of each stage in the last run, where it was measured.
fn stages_json(plan: &Plan, runs: &[Run]) -> Value {
    let seconds = runs.last().and_then(|run| run.times.stage_seconds.as_ref());
    let stages = |seconds: &Vec<f64>| {
        plan.stages.iter().zip(seconds).map(|(name, seconds)| json!({ "name": name, "seconds": seconds })).collect()
    };
    seconds.map_or(Value::Null, stages)
}

fn median(runs: &[Run]) -> f64 {
    let mut seconds: Vec<f64> = runs.iter().map(|run| run.times.seconds).collect();
    seconds.sort_by(f64::total_cmp);
    let middle = seconds.len() / 2;
    match seconds.len() {
        0 => 0.0,
        count if count % 2 == 1 => seconds[middle],
        _ => 0.5 * (seconds[middle - 1] + seconds[middle]),
    }
}

fn names(files: &[PathBuf]) -> String {
    match files {
        [] => "nothing".to_owned(),
        [only] => only.display().to_string(),
        [first, .., last] => format!("{} files, {} to {}", files.len(), first.display(), last.display()),
    }
}

/// Bytes for a table of text.
pub(super) fn bytes_text(bytes: Bytes) -> String {
    format!("{bytes} ({})", bytes.0)
}
