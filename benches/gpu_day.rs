//! All measurements for a day with access to a GPU: `cargo xtask gpu-day`, or this program and
//! `wgvae` copied to the machine with the GPU. It needs no network and no repository.
//!
//! Each part runs in its own process with a time limit, and the file is written after each
//! measurement. So neither a hanging driver nor a lost machine loses earlier results. The output is
//! one JSON file, named by adapter and driver, and a summary in Markdown.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use clap::{Parser, ValueEnum};
use pollster::block_on;
use serde_json::{Map, Value, json};
use wgvae::config::Family;
use wgvae::images::Output;
use wgvae::kernels::choice::{KernelChoice, MatmulTile};
use wgvae::model::blocks::Part as ClipPart;
use wgvae::model::graph::Graph;
use wgvae::model::networks::part_of_decoder;
use wgvae::plan::PlanOptions;
use wgvae::tuning::TuneOptions;
use wgvae::{Gpu, GpuOptions, LatentSpace, Size, Storage};

#[path = "../tests/cpu/launches/devices.rs"]
#[expect(dead_code, reason = "the tests use all of it")]
mod devices;
#[path = "support/kinds.rs"]
mod kinds;
#[path = "support/layers.rs"]
mod layers;
#[path = "../tests/cpu/launches/model.rs"]
mod model;
#[path = "support/summary.rs"]
mod summary;
mod support;
#[path = "../tests/cpu/launches/work.rs"]
mod work;

use self::layers::LAYERS;
use self::support::Bench;

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

/// Sizes of bands to try, in MiB of each of the two intermediates.
const BANDS: [u64; 7] = [4, 8, 16, 24, 32, 48, 64];
/// Images that are measured unless other decodes are named, one of each kind: with group norms and
/// attention, without both, and with norms of pixels.
const DECODES: [&str; 3] = ["sd15", "taesd", "wan21"];
/// The end of the name of a decode if it is a later part of a clip.
const OF_CLIP: &str = ":clip";
/// Width and height of images, and of parts of clips, pixels.
const IMAGE: [u32; 2] = [1024, 1024];
const CLIP: [u32; 2] = [832, 480];
/// Number of runs of each measurement, after a first run in which drivers compile. A quick run has
/// that first one only.
const TURNS: usize = 5;

#[derive(Parser)]
#[command(about = "Measures everything about the best adapter of this machine, in under half an hour.")]
struct Arguments {
    /// Folder for the JSON file and the summary.
    #[arg(long, default_value = ".")]
    out: PathBuf,
    /// Run only these parts.
    #[arg(long, value_enum, value_delimiter = ',')]
    only: Vec<Part>,
    /// Seconds after which a part measures nothing more. It is killed half a minute later.
    #[arg(long, default_value_t = 240)]
    limit: u64,
    /// Decode these in `decodes` and `kernels`: images by their family, and later parts of clips
    /// by, say, wan21:clip.
    #[arg(long, value_delimiter = ',', default_values = DECODES)]
    decodes: Vec<String>,
    /// Use only these storages: `f32`, `f16`, `packed_f16`, `fast_f16`. The last also on matrix
    /// units.
    #[arg(long, value_delimiter = ',', value_parser = storage)]
    storages: Vec<Storage>,
    /// Use small images and few turns, to check that everything runs.
    #[arg(long)]
    quick: bool,
    /// Path of the `wgvae` command. Default: beside this program, or one folder above.
    #[arg(long)]
    wgvae: Option<PathBuf>,
    /// Measure this part in this process, into `file`.
    #[arg(long, hide = true, requires = "file")]
    part: Option<Part>,
    #[arg(long, hide = true)]
    file: Option<PathBuf>,
}

/// The parts in their order. The part that shows whether the others are worth anything comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Part {
    /// All sets of kernels, compared with the results of diffusers: `wgvae selftest`.
    Selftest,
    /// The choice of `wgvae tune`, and the FMA ceiling.
    Tune,
    /// Whole decodes, or parts of clips, in every storage, with the time of each stage.
    Decodes,
    /// The kernels of these decodes, each timed alone, beside what the model of `launches.md`
    /// predicts.
    Kernels,
    /// Every tile of products, and matrix units, on layers of real decoders.
    Products,
    /// A whole decode with bands of 4 to 64 MiB.
    Bands,
}

impl Part {
    fn name(self) -> String {
        self.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
    }
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let done = match (arguments.part, &arguments.file) {
        (Some(part), Some(file)) => Measuring::new(&arguments, part, file).and_then(Measuring::run).map(|()| true),
        _ => run_parts(&arguments),
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("gpu-day: error: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Runs each part in its own process. Returns true if all succeeded.
fn run_parts(arguments: &Arguments) -> Result<bool> {
    // This opens no device, so that the parts find the machine untouched.
    let adapters = block_on(wgvae::device::adapters(None))?;
    let adapter = &adapters.first().ok_or("there is no adapter")?.1;
    fs::create_dir_all(&arguments.out)?;
    let file = arguments.out.join(format!("gpu-day-{}.json", slug(&format!("{} {}", adapter.name, adapter.driver))));
    let mut day = json!({
        "version": env!("CARGO_PKG_VERSION"),
        "quick": arguments.quick,
        "adapter": adapter,
        "matrix_units": { "shapes": adapter.cooperative_matrices, "kernels": adapter.matrix_units.map(|_| ["matmul_matrix"]) },
        "parts": {},
    });
    write(&file, &day)?;
    println!("{} ({}), into {}", adapter.name, adapter.driver, file.display());
    let parts = Part::value_variants().iter().filter(|part| arguments.only.is_empty() || arguments.only.contains(part));
    let names: Vec<String> = Part::value_variants().iter().map(|part| part.name()).collect();
    let mut right = true;
    for part in parts {
        let start = Instant::now();
        let ended = run_part(arguments, *part, &file)?;
        day = read(&file)?;
        let found = &mut day["parts"][part.name()];
        found["seconds"] = json!(start.elapsed().as_secs_f64());
        match ended {
            Some(status) if status.success() => {}
            Some(status) => (found["error"], right) = (json!(status.to_string()), false),
            None => (found["error"], right) = (json!("killed: it exceeded its time limit"), false),
        }
        write(&file, &day)?;
        fs::write(file.with_extension("md"), summary::text(&day, &names))?;
        println!(
            "{}: {:.0} s{}",
            part.name(),
            start.elapsed().as_secs_f64(),
            if ended.is_some() { "" } else { ", cut" }
        );
    }
    println!("\n{}", summary::text(&day, &names));
    Ok(right)
}

/// Reads the name of a storage.
fn storage(name: &str) -> std::result::Result<Storage, serde_json::Error> {
    serde_json::from_value(json!(name))
}

/// Runs `part` in its own process. Returns its exit status, or `None` if it was killed.
fn run_part(arguments: &Arguments, part: Part, file: &Path) -> Result<Option<ExitStatus>> {
    const MORE: Duration = Duration::from_secs(30);
    let mut command = Command::new(std::env::current_exe()?);
    command.args(["--part", &part.name(), "--limit", &arguments.limit.to_string(), "--file"]).arg(file);
    command.args(arguments.quick.then_some("--quick")).stdin(Stdio::null());
    command.args(["--decodes", &arguments.decodes.join(",")]);
    for storage in &arguments.storages {
        command.args(["--storages", json!(storage).as_str().ok_or("a storage is a word")?]);
    }
    if let Some(wgvae) = &arguments.wgvae {
        command.arg("--wgvae").arg(wgvae);
    }
    let mut child = command.spawn()?;
    let ended = wait(&mut child, Duration::from_secs(arguments.limit) + MORE)?;
    if ended.is_none() {
        child.kill()?;
        child.wait()?;
    }
    Ok(ended)
}

/// Waits for `child`, at most for `most`. Returns `None` if the time ran out.
fn wait(child: &mut Child, most: Duration) -> Result<Option<ExitStatus>> {
    let start = Instant::now();
    while start.elapsed() < most {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    Ok(None)
}

/// A part that is being measured.
struct Measuring<'a> {
    arguments: &'a Arguments,
    part: Part,
    file: &'a Path,
    day: Value,
    start: Instant,
}

impl<'a> Measuring<'a> {
    fn new(arguments: &'a Arguments, part: Part, file: &'a Path) -> Result<Self> {
        let mut day = read(file)?;
        day["parts"][part.name()] = json!({ "rows": [] });
        Ok(Self { arguments, part, file, day, start: Instant::now() })
    }

    fn run(mut self) -> Result<()> {
        if self.part == Part::Selftest {
            return self.selftest();
        }
        let gpu = block_on(Gpu::request(&GpuOptions::default()))?;
        if self.part == Part::Tune {
            return self.tune(&gpu);
        }
        let on_units = match gpu.adapter().matrix_units {
            Some(_) => Some(block_on(Gpu::request(&GpuOptions { matrix_units: true, ..GpuOptions::default() }))?),
            None => None,
        };
        let mut ways: Vec<Way<'_>> =
            self.storages(&gpu).into_iter().map(|storage| Way { gpu: &gpu, storage }).collect();
        let wanted = &self.arguments.storages;
        let fast = wanted.is_empty() || wanted.contains(&Storage::FastF16);
        ways.extend(on_units.iter().filter(|_| fast).map(|gpu| Way { gpu, storage: Storage::FastF16 }));
        if ways.is_empty() {
            let all = json!(Self::all_storages(self.arguments.quick, &gpu));
            return Err(format!("--storages: expected some of {all}, which this run can measure, found none").into());
        }
        match self.part {
            Part::Selftest | Part::Tune => Ok(()),
            Part::Decodes => self.decodes(&ways),
            Part::Kernels => self.kernels(&ways),
            Part::Products => self.products(&ways),
            Part::Bands => self.bands(&ways),
        }
    }

    /// Saves a measurement. Returns false if the part has no more time.
    fn keep(&mut self, row: Value) -> Result<bool> {
        let part = &mut self.day["parts"][self.part.name()];
        part["rows"].as_array_mut().ok_or("rows are a list")?.push(row);
        let in_time = self.start.elapsed() < Duration::from_secs(self.arguments.limit);
        part["cut"] = json!(!in_time);
        write(self.file, &self.day)?;
        Ok(in_time)
    }

    fn selftest(&mut self) -> Result<()> {
        let output = Command::new(self.wgvae()?).args(["selftest", "--json"]).output()?;
        let found: Value = serde_json::from_slice(&output.stdout)
            .map_err(|error| format!("wgvae selftest: {error}: {}", String::from_utf8_lossy(&output.stderr)))?;
        self.keep(found)?;
        if output.status.success() { Ok(()) } else { Err("wgvae selftest: something is wrong".into()) }
    }

    /// Finds the command line, which lies beside this program, or above it if cargo has built both.
    fn wgvae(&self) -> Result<PathBuf> {
        let name = format!("wgvae{}", std::env::consts::EXE_SUFFIX);
        let own = std::env::current_exe()?;
        let near = own.ancestors().skip(1).take(2).map(|folder| folder.join(&name));
        let found = self.arguments.wgvae.clone().into_iter().chain(near).find(|path| path.is_file());
        found.ok_or_else(|| {
            format!("expected {name} beside this program, found none: give its path with --wgvae").into()
        })
    }

    fn tune(&mut self, gpu: &Gpu) -> Result<()> {
        let tuning = block_on(gpu.tune(&TuneOptions::default()))?;
        self.keep(json!({ "ceiling_gflops": support::ceiling(), "tuning": tuning }))?;
        Ok(())
    }

    fn decodes(&mut self, ways: &[Way<'_>]) -> Result<()> {
        for name in &self.arguments.decodes {
            let (graph, what) = self.graph(name)?;
            for way in ways {
                let mut bench = Bench::new(way.gpu, &graph, way.storage);
                let row = self.measured(&mut bench);
                if !self.keep(with(row, with(way.json(), what.clone())))? {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    fn kernels(&mut self, ways: &[Way<'_>]) -> Result<()> {
        // The first turn compiles. A quick run measures one decode: TAESD, unless others are
        // named.
        let (turns, decodes) = match &self.arguments.decodes[..] {
            [_, quick, ..] | [quick] if self.arguments.quick => (1, std::slice::from_ref(quick)),
            all => (4, all),
        };
        for name in decodes {
            let (graph, what) = self.graph(name)?;
            for way in ways {
                let whole = Bench::new(way.gpu, &graph, way.storage);
                let kinds = kinds::timed(&whole, way.gpu, turns);
                if !self.keep(with(with(json!({ "kinds": kinds }), way.json()), what.clone()))? {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    fn products(&mut self, ways: &[Way<'_>]) -> Result<()> {
        let layers = if self.arguments.quick { &LAYERS[..2] } else { &LAYERS[..] };
        let kernels = tiles(ways[0].gpu)?;
        for layer in layers {
            for way in ways {
                // Matrix units have one tile.
                let count = if way.on_units() { 1 } else { kernels.len() };
                for choice in &kernels[..count] {
                    let options = PlanOptions { choice: Some(*choice), ..profiled(way.storage) };
                    let mut bench = Bench::with(way.gpu, &layer.graph(), &options);
                    let row = self.measured(&mut bench);
                    let tile = choice.winograd_tile.to_string();
                    if !self.keep(with(row, with(way.json(), json!({ "layer": layer.name, "tile": tile }))))? {
                        return Ok(());
                    }
                }
            }
        }
        Ok(())
    }

    fn bands(&mut self, ways: &[Way<'_>]) -> Result<()> {
        let (graph, what) = self.graph(DECODES[0])?;
        let bands = if self.arguments.quick { &BANDS[..2] } else { &BANDS[..] };
        for way in ways {
            for mebibytes in bands {
                let choice = KernelChoice { winograd_scratch_bytes: mebibytes << 20, ..*way.gpu.kernels() };
                let options = PlanOptions { choice: Some(choice), ..profiled(way.storage) };
                let row = self.measured(&mut Bench::with(way.gpu, &graph, &options));
                if !self.keep(with(row, with(way.json(), with(json!({ "mebibytes": mebibytes }), what.clone()))))? {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// Builds the decoder that `name` stands for. Returns its graph and what it decodes.
    fn graph(&self, name: &str) -> Result<(Graph, Value)> {
        let (family, part, [width, height]) = match name.strip_suffix(OF_CLIP) {
            Some(family) => (family, ClipPart::Next, CLIP),
            None => (name, ClipPart::Image, IMAGE),
        };
        let config = Family::find(family)?.config();
        if part == ClipPart::Next && !config.has_time() {
            return Err(format!("--decodes {name}: expected a family with clips, found {family}").into());
        }
        let [width, height] = if self.arguments.quick { [64, 64] } else { [width, height] };
        let factor = config.latent_factor(LatentSpace::Model);
        let latents = Size { width: width / factor, height: height / factor };
        let graph = part_of_decoder(&config, part, latents, LatentSpace::Model);
        Ok((graph, json!({ "decode": name, "size": format!("{width}x{height}") })))
    }

    /// Returns the storages to measure.
    fn storages(&self, gpu: &Gpu) -> Vec<Storage> {
        let wanted = &self.arguments.storages;
        let all = Self::all_storages(self.arguments.quick, gpu).into_iter();
        all.filter(|storage| wanted.is_empty() || wanted.contains(storage)).collect()
    }

    /// Returns the storages of the device. A quick run uses one 16-bit storage only.
    fn all_storages(quick: bool, gpu: &Gpu) -> Vec<Storage> {
        match (quick, gpu.limits().shader_f16) {
            (true, true) => vec![Storage::F16],
            (true, false) => vec![Storage::PackedF16],
            (false, true) => vec![Storage::F32, Storage::F16, Storage::FastF16],
            (false, false) => vec![Storage::F32, Storage::PackedF16],
        }
    }

    /// Returns the fastest run of `bench`, by the device's clock if it has one.
    fn measured(&self, bench: &mut Bench) -> Value {
        let turns = if self.arguments.quick { 1 } else { TURNS };
        if !self.arguments.quick {
            bench.run();
        }
        let device = |stages: &Option<Vec<f64>>| stages.as_ref().map(|stages| stages.iter().sum::<f64>());
        let run = (0..turns)
            .map(|_| bench.run())
            .min_by(|one, other| one.seconds.total_cmp(&other.seconds))
            .expect("at least one turn");
        let seconds = device(&run.stage_seconds).unwrap_or(run.seconds);
        let stages = run.stage_seconds.iter().flatten().zip(&bench.plan.stages);
        let stages: Vec<Value> = stages.map(|(seconds, name)| json!([name, seconds])).collect();
        json!({
            "seconds": run.seconds,
            "device_seconds": device(&run.stage_seconds),
            "gflops": bench.plan.macs() as f64 * 2.0 / seconds * 1e-9,
            "peak_bytes": bench.plan.memory.peak(),
            "steps": bench.plan.steps.len(),
            "submissions": run.submissions.len(),
            "longest_submission": run.submissions.iter().map(|submission| submission.seconds).fold(0.0, f64::max),
            "stages": stages,
        })
    }
}

/// A storage on a device, with or without its matrix units.
struct Way<'a> {
    gpu: &'a Gpu,
    storage: Storage,
}

impl Way<'_> {
    fn on_units(&self) -> bool {
        self.gpu.limits().matrix_units.is_some()
    }

    fn json(&self) -> Value {
        json!({ "storage": self.storage, "on": self.on_units().then_some("matrix units") })
    }
}

/// Puts the members of `what` before those of `row`.
fn with(row: Value, what: Value) -> Value {
    let members =
        [what, row].into_iter().filter_map(|value| if let Value::Object(map) = value { Some(map) } else { None });
    Value::Object(members.flatten().collect::<Map<String, Value>>())
}

fn profiled(storage: Storage) -> PlanOptions {
    PlanOptions { profile: true, ..PlanOptions::new(storage, Output::Rgba8) }
}

/// Returns the kernels of the rules with each tile that tuning may choose.
fn tiles(gpu: &Gpu) -> Result<Vec<KernelChoice>> {
    let trials = block_on(gpu.tune(&TuneOptions { bands: false, time: Duration::ZERO }))?.trials;
    let mut seen: Vec<MatmulTile> = Vec::new();
    let is_new = |choice: &KernelChoice| {
        let is_new = !seen.contains(&choice.winograd_tile);
        seen.push(choice.winograd_tile);
        is_new
    };
    Ok(trials.into_iter().map(|trial| trial.kernels).filter(is_new).collect())
}

/// Returns the letters and digits in lower case, with words joined by dashes.
fn slug(text: &str) -> String {
    let words = text.split(|letter: char| !letter.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    words.collect::<Vec<_>>().join("-").to_lowercase()
}

fn read(file: &Path) -> Result<Value> {
    Ok(serde_json::from_slice(&fs::read(file)?)?)
}

/// Writes the file atomically: it has either its old or its new content.
fn write(file: &Path, day: &Value) -> Result<()> {
    let partial = file.with_extension("partial");
    fs::write(&partial, serde_json::to_string_pretty(day)?)?;
    Ok(fs::rename(partial, file)?)
}
