//! Finds the fastest kernels for a device by running those that the rules allow. All of them give
//! the same bits.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use web_time::{Duration, Instant};

use crate::error::{Error, Result};
use crate::execution::{AdapterReport, Control, Submission};
use crate::gpu::{Gpu, GpuBuffer, Input, LoadedWeight, Prepared};
pub use crate::kernels::choice::KernelChoice;
use crate::kernels::{source, weights};
use crate::limits::DeviceKind;
use crate::model::graph::{Ending, Graph, Shape, Transform};
use crate::plan::{Output, Plan, PlanOptions};
use crate::tensor::Storage;

/// A choice replaces that of the rules only if its time is at most this fraction of theirs. Smaller
/// differences are noise.
const WORTH_IT: f64 = 0.95;
/// The number of timed runs of each candidate. The candidates take turns.
const TURNS: usize = 3;
/// Input and output channels of the convolutions that are timed, as in the largest part of most
/// decodes.
const CHANNELS: u32 = 256;
/// The least time of a run on a GPU, seconds. Browsers report the device's time in steps of 100 us,
/// and their own time no better.
const LONG_ENOUGH: f64 = 8e-3;
/// The most convolutions of a run, one after the other.
const MOST_LAYERS: u32 = 64;
/// The step between the values of the input.
const INPUT: f32 = 0.01;
/// The step between the values of the weights. Each result sums 2304 weights of both signs, each at
/// most eight steps, so values do not grow from one convolution to the next.
const WEIGHT: f32 = 1e-4;

/// The candidates and the time limit of a measurement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TuneOptions {
    /// True to try band sizes, too: they change how much of an image is transformed at once, and so
    /// the memory of plans. Otherwise only tiles are tried, which do not change memory.
    pub bands: bool,
    /// The time limit, for tiles and for bands each: no further turn begins after it. Each
    /// candidate runs at least twice. Its first run compiles and gives the bits to compare.
    pub time: Duration,
}

impl Default for TuneOptions {
    /// Returns options for tiles and bands, a quarter of a second each.
    fn default() -> Self {
        Self { bands: true, time: Duration::from_millis(250) }
    }
}

/// One candidate and its result.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Trial {
    /// The kernels.
    pub kernels: KernelChoice,
    /// The time of one 3x3 convolution of 256 channels in the fastest run, seconds. A run has one
    /// or several of them.
    pub seconds: f64,
    /// True if the result equals that of the rules' kernels, to the bit. Otherwise the candidate is
    /// not taken.
    pub same_bits: bool,
}

/// The result of a measurement.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Tuning {
    /// The kernels to take; see [`Gpu::with_kernels`].
    pub kernels: KernelChoice,
    /// All candidates, the rules' kernels first.
    pub trials: Vec<Trial>,
}

impl Gpu {
    /// Times the kernels that the rules allow on this device. Does not switch to the fastest:
    /// [`Self::with_kernels`] does that.
    ///
    /// # Errors
    /// [`Error::Device`], as for a decode.
    pub async fn tune(&self, options: &TuneOptions) -> Result<Tuning> {
        let rules = self.adapter().kernels;
        let layers = match self.limits().kind {
            DeviceKind::Cpu | DeviceKind::Host => 1,
            DeviceKind::Gpu => self.layers_to_time().await?,
        };
        let mut contest = Contest { gpu: self, layers, time: options.time, trials: Vec::new(), bits: Vec::new() };
        contest.run(&rules.other_tiles(self.limits())).await?;
        if options.bands {
            let best = contest.best();
            contest.run(&best.other_bands(self.limits().kind)).await?;
        }
        Ok(Tuning { kernels: contest.best(), trials: contest.trials })
    }

    /// Returns the key under which the result of [`Self::tune`] may be stored. It changes with the
    /// device, the driver, the text of the kernels and the version of this crate.
    pub fn tuning_key(&self) -> String {
        let AdapterReport { backend, pci_id, name, driver, .. } = self.adapter();
        // The text alone would miss a change of the half in Rust, which chooses their launches.
        let (version, kernels) = (env!("CARGO_PKG_VERSION"), source::fingerprint());
        format!("{backend} {pci_id} {name} {driver}, wgvae {version}, kernels {kernels:016x}")
    }

    /// Returns how many convolutions with the rules' kernels take long enough to be timed.
    async fn layers_to_time(&self) -> Result<u32> {
        let mut layers = 1;
        while layers < MOST_LAYERS {
            let mut runner = Runner::new(self, self.adapter().kernels, layers).await?;
            // The first run compiles.
            runner.run().await?;
            let (seconds, _) = runner.run().await?;
            if seconds >= LONG_ENOUGH {
                break;
            }
            layers *= 4;
        }
        Ok(layers)
    }
}

/// A measurement in which candidates run in turns.
struct Contest<'a> {
    gpu: &'a Gpu,
    layers: u32,
    time: Duration,
    trials: Vec<Trial>,
    /// The result of the rules' kernels.
    bits: Vec<u8>,
}

impl Contest<'_> {
    /// Times `candidates` and the best candidate so far. The first run of each is not timed,
    /// because drivers compile in it; its result is compared instead.
    async fn run(&mut self, candidates: &[KernelChoice]) -> Result<()> {
        let mut runners = Vec::new();
        for &kernels in std::iter::once(&self.best()).chain(candidates) {
            let mut runner = Runner::new(self.gpu, kernels, self.layers).await?;
            let (_, bits) = runner.run().await?;
            if self.bits.is_empty() {
                self.bits.clone_from(&bits);
            }
            let number = self.number(kernels);
            self.trials[number].same_bits &= bits == self.bits;
            runners.push((number, runner));
        }
        let start = Instant::now();
        for turn in 0..TURNS {
            for (number, runner) in &mut runners {
                if turn > 0 && start.elapsed() > self.time {
                    return Ok(());
                }
                let (seconds, _) = runner.run().await?;
                let trial = &mut self.trials[*number];
                trial.seconds = trial.seconds.min(seconds / f64::from(self.layers));
            }
        }
        Ok(())
    }

    /// Returns the index of the trial of `kernels`. Adds one if there is none.
    fn number(&mut self, kernels: KernelChoice) -> usize {
        self.trials.iter().position(|trial| trial.kernels == kernels).unwrap_or_else(|| {
            self.trials.push(Trial { kernels, seconds: f64::INFINITY, same_bits: true });
            self.trials.len() - 1
        })
    }

    /// Returns the fastest kernels with the right result, or the rules' kernels if none is enough
    /// faster.
    fn best(&self) -> KernelChoice {
        let Some(rules) = self.trials.first() else { return self.gpu.adapter().kernels };
        let right = self.trials.iter().filter(|trial| trial.same_bits);
        let fastest = right.min_by(|one, other| one.seconds.total_cmp(&other.seconds));
        fastest.filter(|fastest| fastest.seconds < rules.seconds * WORTH_IT).unwrap_or(rules).kernels
    }
}

/// Convolutions that are prepared to run with given kernels.
struct Runner {
    prepared: Prepared,
    input: Vec<f32>,
    _weights: Vec<GpuBuffer>,
}

impl Runner {
    async fn new(gpu: &Gpu, kernels: KernelChoice, layers: u32) -> Result<Self> {
        let graph = convolutions(gpu.limits().kind, layers);
        let options =
            PlanOptions { choice: Some(kernels), profile: true, ..PlanOptions::new(Storage::F32, Output::Raw) };
        let plan = Arc::new(Plan::new(&graph, gpu.limits(), &options)?);
        let mut buffers = Vec::new();
        for weight in &plan.weights {
            let values = small_numbers(usize::try_from(weight.bytes.0 / 4).unwrap_or(usize::MAX), 17, WEIGHT);
            buffers.push(GpuBuffer::with_data(gpu, &weight.name, &weights::store(&values, weight.storage)).await?);
        }
        let input = plan.input();
        let values = small_numbers((input.size.width * input.size.height * input.planes()) as usize, 13, INPUT);
        let prepared = Prepared::new(gpu, plan, buffers.iter().map(LoadedWeight::Gpu).collect()).await?;
        Ok(Self { prepared, input: values, _weights: buffers })
    }

    /// Runs the convolutions. Returns the seconds of the steps that compute, and the result's
    /// bytes. The seconds are those of stages by the device's clock if it has one, else those of
    /// submissions.
    async fn run(&mut self) -> Result<(f64, Vec<u8>)> {
        let mut bits = Vec::new();
        let mut keep = |_: (u32, u32), rows: &[u8]| {
            bits.extend_from_slice(rows);
            Ok::<(), Error>(())
        };
        let input = Input::Host(vec![self.input.as_slice().into()]);
        let report = self.prepared.run(&input, &mut Control::default(), &mut keep).await?;
        let plan = self.prepared.plan();
        let stage_computes = |stage: usize| plan.steps.iter().any(|step| step.stage == stage && step.macs > 0);
        let computes = |of: &&Submission| plan.steps[of.steps.clone()].iter().any(|step| step.macs > 0);
        let seconds = match &report.stage_seconds {
            Some(stages) => stages.iter().enumerate().filter(|(stage, _)| stage_computes(*stage)).map(|(_, s)| s).sum(),
            None => report.submissions.iter().filter(computes).map(|submission| submission.seconds).sum(),
        };
        Ok((seconds, bits))
    }
}

/// Builds a graph of 3x3 convolutions with the same weights, one after the other. Each takes some
/// 30 ms on a CPU driver, and a quarter to 10 ms on a GPU. The image is small, so that without
/// timestamps the transfers take little of the measured time.
fn convolutions(kind: DeviceKind, layers: u32) -> Graph {
    let side = match kind {
        DeviceKind::Cpu | DeviceKind::Host => 64,
        DeviceKind::Gpu => 128,
    };
    let mut graph = Graph::default();
    let input = graph.input(Shape::image(side, side, CHANNELS), Transform::none(CHANNELS));
    let result = (0..layers).fold(input, |input, _| graph.conv2d("conv", input, CHANNELS, 3));
    graph.output(result, Ending::NONE);
    graph
}

/// Returns `count` multiples of `unit` around zero that repeat after `period`.
fn small_numbers(count: usize, period: usize, unit: f32) -> Vec<f32> {
    (0..count).map(|index| ((index % period) as f32 - (period / 2) as f32) * unit).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Needs an adapter, as the tests in `tests/gpu` do. The devices of the test machines need only
    /// one convolution.
    #[test]
    fn many_convolutions_neither_grow_nor_vanish() {
        let gpu = pollster::block_on(Gpu::request(&crate::gpu::GpuOptions::default())).expect("an adapter");
        for layers in [1, 4, MOST_LAYERS / 4] {
            let mut runner = pollster::block_on(Runner::new(&gpu, *gpu.kernels(), layers)).expect("a plan");
            let (seconds, bits) = pollster::block_on(runner.run()).expect("a run");
            let values: Vec<f32> = bytemuck::pod_collect_to_vec(&bits);
            assert_eq!(values.len(), runner.input.len(), "as many come out as go in");
            let largest = values.iter().fold(0.0_f32, |largest, value| largest.max(value.abs()));
            assert!(values.iter().all(|value| value.is_finite()), "{layers} convolutions");
            assert!(largest > 1e-6 && largest < 1.0, "{layers} convolutions: {largest}");
            assert!(seconds > 0.0, "{layers} convolutions");
        }
    }
}
