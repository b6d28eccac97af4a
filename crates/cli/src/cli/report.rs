//! Facts about plans, decodes and encodes, as JSON and as text.

use std::path::PathBuf;

use serde_json::{Value, json};
use wgvae::device::DeviceLimits;
use wgvae::report::Plan;
use wgvae::{Bytes, Device, Direction, EncodeOptions, Plans, Request, Result, Size, Vae};
use wgvae_media::clip_files::Fps;

use super::images::Source;
use super::session::{Run, Session};
use super::stderr::say;
use super::tiling::{tiles_text, tiling_json};

/// Returns the facts about a plan, and the limits that it was made for.
pub(super) fn plan_json(plan: &Plan, limits: &DeviceLimits) -> Value {
    let mut facts = json!(plan.facts());
    facts["limits"] = json!(limits);
    facts
}

/// Returns the facts that only a clip has: `frames` pictures of `size` pixels, from `latent_frames`
/// frames of latents.
pub(super) fn clip_json(plans: &Plans, frames: u64, latent_frames: u64, size: Size) -> Value {
    json!({
        "frames": frames,
        "size": size,
        "latent_frames": latent_frames,
        "state_bytes": plans.state_bytes(),
        "host_bytes": plans.host_bytes(),
        "first_plan": plans.first().facts(),
    })
}

/// Report of a decode or an encode: the files, the adapter, time and memory.
#[derive(Debug)]
pub(super) struct Report {
    facts: Value,
    text: String,
}

/// Subject of a report.
struct Subject {
    /// Verb: `decoded` or `encoded`.
    done: &'static str,
    /// Name of the list of runs in the JSON.
    runs: &'static str,
    /// Text that follows the files' names.
    what: String,
    /// Facts that only this kind of report has.
    facts: Value,
    /// Seconds, and the text that follows them.
    seconds: (f64, String),
    /// Lines at the end of the text.
    more: String,
}

impl Subject {
    /// Describes decodes of images of one size.
    fn of_decode(vae: &Vae, request: &Request, runs: &[Run]) -> Self {
        let size = vae.config().image_size(request.size, request.latents);
        Self {
            done: "decoded",
            runs: "decodes",
            what: format!("({size}){}", tiles_text(request.tiling, request.size)),
            facts: json!({ "tiling": tiling_json(request.tiling, vae.config(), request.size) }),
            seconds: median(runs),
            more: String::new(),
        }
    }
}

/// Clip that was decoded or encoded.
#[derive(Debug)]
pub(super) struct ClipSubject {
    /// Direction: decode or encode.
    pub(super) operation: Direction,
    /// Number of frames in the file of frames.
    pub(super) frames: u64,
    /// Number of frames of latents. A decoder that sees later frames has more parts.
    pub(super) latent_frames: u64,
    /// Size of a frame, pixels.
    pub(super) size: Size,
    /// Frames per second, if known.
    pub(super) fps: Option<Fps>,
    /// Seconds from the start of the first part to the last frame in its file.
    pub(super) seconds: f64,
    /// Facts that only this direction has.
    pub(super) facts: Value,
}

impl Report {
    /// Collects the facts of decodes. Call it while the buffers of the last decode exist, because
    /// it reads the allocator's counters.
    pub(super) async fn of_decode(
        device: &Device,
        vae: &mut Vae,
        request: &Request,
        runs: &[Run],
        files: &[PathBuf],
    ) -> Result<Self> {
        let (load_seconds, subject) = (vae.load_seconds(), Subject::of_decode(vae, request, runs));
        let plan = vae.prepare(request).await?;
        Ok(Self::new(device, load_seconds, plan, plan.memory.peak(), &subject, runs, files))
    }

    /// Collects the facts of decodes of a folder's files, whose pictures have `sizes`: the plan of
    /// the last, which `request` describes, the peak memory of the largest. Call it while the
    /// buffers of the last decode exist.
    pub(super) async fn of_folder(
        device: &Device,
        vae: &mut Vae,
        request: &Request,
        session: Session<'_>,
        sizes: &[Size],
        files: &[PathBuf],
    ) -> Result<Self> {
        let (load_seconds, predicted, runs) = (vae.load_seconds(), session.predicted, session.finish());
        let mut subject = Subject::of_decode(vae, request, &runs);
        if sizes.iter().any(|size| *size != sizes[0]) {
            subject.what = "(of several sizes)".to_owned();
        }
        let plan = vae.prepare(request).await?;
        Ok(Self::new(device, load_seconds, plan, predicted, &subject, &runs, files))
    }

    /// Collects the facts of encodes: the plan of the last, the peak memory of the largest. Call it
    /// while the buffers of the last encode exist.
    pub(super) async fn of_encode(
        device: &Device,
        vae: &mut Vae,
        images: &[Source],
        options: &EncodeOptions,
        session: Session<'_>,
        files: &[PathBuf],
    ) -> Result<Self> {
        let load_seconds = vae.load_seconds();
        let predicted = session.predicted;
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
            seconds: median(&session.runs),
            more: String::new(),
        };
        let plan = vae.prepare(&options.request(size)).await?;
        Ok(Self::new(device, load_seconds, plan, predicted, &subject, &session.finish(), files))
    }

    /// Collects the facts of a clip, with the plan of its last part. Call it while the buffers of
    /// that part exist.
    pub(super) fn of_clip(
        (device, vae): (&Device, &Vae),
        plans: &Plans,
        subject: ClipSubject,
        session: Session<'_>,
        files: &[PathBuf],
    ) -> Self {
        let ClipSubject { operation, frames, latent_frames, size, fps, seconds, facts } = subject;
        let (done, runs, of) = match operation {
            Direction::Decode => ("decoded", "decodes", ""),
            Direction::Encode => ("encoded", "encodes", "of "),
        };
        let (parts, predicted) = (session.runs.len() as u64, session.predicted);
        let mut own = json!({ "clip": clip_json(plans, frames, latent_frames, size) });
        own["clip"]["fps"] = json!(fps.map(|fps| fps.to_string()));
        extend(&mut own, &facts);
        let subject = Subject {
            done,
            runs,
            what: format!("({of}{frames} frame{}, {size})", if frames == 1 { "" } else { "s" }),
            facts: own,
            seconds: (seconds, format!(" in {parts} part{}", if parts == 1 { "" } else { "s" })),
            more: format!("\n{} kept between parts, {} in host memory", plans.state_bytes(), plans.host_bytes()),
        };
        let last = plans.part(parts.saturating_sub(1));
        Self::new(device, vae.load_seconds(), last, predicted, &subject, &session.finish(), files)
    }

    fn new(
        device: &Device,
        load_seconds: f64,
        plan: &Plan,
        predicted: Bytes,
        subject: &Subject,
        runs: &[Run],
        files: &[PathBuf],
    ) -> Self {
        let allocator = device.allocator_bytes();
        let measured = device.ledger().peak();
        let (kernels, compile_time) = device.compiled();
        let (seconds, of) = &subject.seconds;
        let adapter = device.adapter();
        let mut facts = json!({
            "files": files.iter().map(|file| file.to_string_lossy()).collect::<Vec<_>>(),
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
            "plan": plan_json(plan, device.limits()),
            "stages": stages_json(plan, runs),
        });
        facts[subject.runs] = json!(runs);
        extend(&mut facts, &subject.facts);
        let text = format!(
            "wrote {} {}\n\
             {} in {seconds:.2} s{of} on {} ({}); loaded in {load_seconds:.2} s, compiled {kernels} kernels in {:.2} s\n\
             memory at its peak: {predicted} predicted, {measured} measured{}",
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

    /// Returns the facts as JSON, for a file.
    pub(super) fn to_bytes(&self) -> Vec<u8> {
        format!("{:#}\n", self.facts).into_bytes()
    }

    /// Returns the text for stdout. With `on_stderr`, prints it on stderr and returns an empty
    /// string, because stdout holds the result itself.
    pub(super) fn show(&self, json: bool, on_stderr: bool) -> String {
        let text = if json { super::to_json(&self.facts) } else { self.text.clone() };
        if !on_stderr {
            return text;
        }
        say(&text);
        String::new()
    }
}

/// Returns the GPU time of each stage in the last run, if it was measured.
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

/// Returns the median seconds of the runs, and a text that says so if there are several.
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

/// Formats a number of bytes for a table of text.
pub(super) fn bytes_text(bytes: Bytes) -> String {
    format!("{bytes} ({})", bytes.0)
}
