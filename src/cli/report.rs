//! The facts about a plan and about decodes and encodes, as JSON and as text.

use std::path::PathBuf;

use serde_json::{Value, json};
use wgvae::internals::clip_files::Fps;
use wgvae::report::Operation;
use wgvae::{
    Bytes, Clip, ClipPlans, DecodeOptions, DeviceLimits, EncodeOptions, Gpu, Latents, Plan, Result, Size, Vae,
};

use super::images::Source;
use super::session::{Run, Session};
use super::stderr::say;
use super::tiling::{tiles_text, tiling_json};

/// The facts about a plan, and the limits it was made for.
pub(super) fn plan_json(plan: &Plan, limits: &DeviceLimits) -> Value {
    let mut facts = json!(plan.facts());
    facts["limits"] = json!(limits);
    facts
}

/// The facts that are a clip's: `frames` pictures of `size`, of so many frames of latents.
pub(super) fn clip_json(plans: &ClipPlans, frames: u64, latent_frames: u64, size: Size) -> Value {
    json!({
        "frames": frames,
        "size": size,
        "latent_frames": latent_frames,
        "state_bytes": plans.state_bytes(),
        "host_bytes": plans.host_bytes(),
        "first_plan": plans.first.facts(),
    })
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
    /// What `seconds` says, and what to say of it.
    seconds: (f64, String),
    /// Lines at the end.
    more: String,
}

/// A clip that was decoded or encoded.
#[derive(Debug)]
pub(super) struct ClipSubject {
    /// Which way.
    pub(super) operation: Operation,
    /// Its frames, as they are in the file of frames.
    pub(super) frames: u64,
    /// Extent of a frame, pixels.
    pub(super) size: Size,
    /// How fast they are shown, where that is known.
    pub(super) fps: Option<Fps>,
    /// From the first part to the last frame in its file.
    pub(super) seconds: f64,
    /// What only one direction has.
    pub(super) facts: Value,
}

impl Report {
    /// Collects the facts of decodes. To be called while the buffers of the last exist: the
    /// allocator is asked now.
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
            seconds: median(runs),
            more: String::new(),
        };
        let plan = vae.prepare(latents.size(), options).await?;
        Ok(Self::new(gpu, load_seconds, plan, plan.memory.peak(), &subject, runs, files))
    }

    /// Collects the facts of encodes, the plan being that of the last, the memory that of the
    /// largest. To be called while the buffers of that exist.
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
            seconds: median(session.runs()),
            more: String::new(),
        };
        let plan = vae.prepare_encode(size, options).await?;
        Ok(Self::new(gpu, load_seconds, plan, predicted, &subject, &session.finish(), files))
    }

    /// Collects the facts of a clip, the plan being that of the last part. To be called while its
    /// buffers exist.
    pub(super) fn of_clip(
        gpu: &Gpu,
        clip: &Clip<'_>,
        subject: ClipSubject,
        session: Session<'_>,
        files: &[PathBuf],
    ) -> Self {
        let ClipSubject { operation, frames, size, fps, seconds, facts } = subject;
        let (done, runs, of) = match operation {
            Operation::Decode => ("decoded", "decodes", ""),
            Operation::Encode => ("encoded", "encodes", "of "),
        };
        let (plans, parts, predicted) = (clip.plans(), session.runs().len(), session.predicted());
        let mut own = json!({ "clip": clip_json(plans, frames, parts as u64, size) });
        own["clip"]["fps"] = json!(fps.map(|fps| fps.to_string()));
        extend(&mut own, &facts);
        let subject = Subject {
            done,
            runs,
            what: format!("({of}{frames} frame{}, {size})", if frames == 1 { "" } else { "s" }),
            facts: own,
            seconds: (seconds, format!(" in {parts} part{}", if parts == 1 { "" } else { "s" })),
            more: format!("\n{} kept from part to part, {} in host memory", plans.state_bytes(), plans.host_bytes()),
        };
        let load_seconds = clip.vae().load_seconds();
        Self::new(gpu, load_seconds, plans.of(parts > 1), predicted, &subject, &session.finish(), files)
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
        let (seconds, of) = &subject.seconds;
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
        extend(&mut facts, &subject.facts);
        let text = format!(
            "wrote {} {}\n\
             {} in {seconds:.2} s{of} on {} ({}); loaded in {load_seconds:.2} s, compiled {kernels} kernels in {:.2} s\n\
             GPU memory at its peak: {predicted} predicted, {measured} measured{}",
            names(files),
            subject.what,
            subject.done,
            adapter.name,
            adapter.backend,
            compile_time.as_secs_f64(),
            subject.more,
        );
        Self { facts, text }
    }

    /// For a file.
    pub(super) fn to_bytes(&self) -> Vec<u8> {
        format!("{:#}\n", self.facts).into_bytes()
    }

    /// For stdout; `on_stderr`, because that has what it is of: nothing is left for stdout then.
    pub(super) fn show(&self, json: bool, on_stderr: bool) -> String {
        let text = if json { super::to_json(&self.facts) } else { self.text.clone() };
        if !on_stderr {
            return text;
        }
        say(&text);
        String::new()
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

/// Adds the fields of `more` to `facts`.
fn extend(facts: &mut Value, more: &Value) {
    if let (Value::Object(facts), Value::Object(more)) = (facts, more) {
        facts.extend(more.clone());
    }
}

/// The median of what runs took, and that it is one.
fn median(runs: &[Run]) -> (f64, String) {
    let mut seconds: Vec<f64> = runs.iter().map(|run| run.times.seconds).collect();
    seconds.sort_by(f64::total_cmp);
    let middle = seconds.len() / 2;
    let median = match seconds.len() {
        0 => 0.0,
        count if count % 2 == 1 => seconds[middle],
        _ => 0.5 * (seconds[middle - 1] + seconds[middle]),
    };
    (median, if runs.len() > 1 { format!(" (median of {})", runs.len()) } else { String::new() })
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
