//! The memory report: predicted and measured memory of decodes and encodes. One file per machine,
//! for programs to read, with today's common estimates for comparison.
//!
//! [`MemoryReport`] is the format, and [`merge`] reads it from files. [`text`] and [`html`] show
//! reports; the program in `view/` draws them, here and on the web page. Nothing here measures; the
//! command line does.
//!
//! This crate serves the command line. Its interface changes without notice.

pub mod html;
mod labels;
pub mod merge;
mod read;
mod runs;
pub mod text;

use serde::{Deserialize, Deserializer, Serialize};
use wgvae::device::{AdapterReport, DeviceLimits};
use wgvae::{Bytes, Direction, Size, Storage};

/// Value of [`MemoryReport::schema`] in every report.
pub const SCHEMA: &str = "wgvae-memory-report";

/// Version of the format that this crate writes, and the newest that it reads. It also reads all
/// earlier versions.
pub const VERSION: u32 = 2;

/// First version that knows clips.
const CLIPS_SINCE: u32 = 2;

/// The measurements of one machine. `results/schema/memory-report.schema.json` describes its JSON.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MemoryReport {
    /// Always [`SCHEMA`].
    pub schema: String,
    /// Version of the format, see [`VERSION`].
    pub version: u32,
    /// Version of the crate that measured.
    pub wgvae: String,
    /// The machine that measured.
    pub machine: Machine,
    /// Adapters that were measured.
    pub adapters: Vec<Adapter>,
    /// One row for each adapter, model, operation, size, number of frames, precision and budget.
    pub measurements: Vec<Measurement>,
}

/// A machine, without anything that could identify its owner.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Machine {
    /// Operating system, as Rust names it: `linux`, `windows`, `macos`.
    pub os: String,
    /// Architecture, as Rust names it: `x86_64`, `aarch64`.
    pub arch: String,
    /// Number of processors that a program may use at once.
    pub cpus: usize,
}

/// An adapter of the machine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Adapter {
    /// Name given by the driver.
    pub name: String,
    /// `Vulkan`, `Metal`, `Dx12` or `BrowserWebGpu`.
    pub backend: String,
    /// `DiscreteGpu`, `IntegratedGpu`, `VirtualGpu`, `Cpu` or `Other`.
    pub device_type: String,
    /// Name and version of the driver.
    pub driver: String,
    /// PCI ids of vendor and device.
    pub pci_id: String,
    /// Limits for plans.
    pub limits: DeviceLimits,
}

impl From<&AdapterReport> for Adapter {
    fn from(report: &AdapterReport) -> Self {
        Self {
            name: report.name.clone(),
            backend: report.backend.clone(),
            device_type: report.device_type.clone(),
            driver: report.driver.clone(),
            pci_id: report.pci_id.clone(),
            limits: report.limits.clone(),
        }
    }
}

/// Source of the weights of a measurement. Memory does not depend on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum WeightSource {
    /// Random weights in the shapes of a published model.
    Random,
    /// The embedded model of the command line.
    Embedded,
    /// A file.
    File,
}

/// One run in its own process.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Measurement {
    /// Index into [`MemoryReport::adapters`].
    pub adapter: usize,
    /// Name of a family, `demo`, or name of a file or folder.
    pub model: String,
    /// Source of its weights.
    pub weights: WeightSource,
    /// Direction.
    pub operation: Direction,
    /// Number of columns of the picture.
    pub width: u32,
    /// Number of rows of the picture.
    pub height: u32,
    /// Number of pictures of the clip. Absent or 1 for an image.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    pub frames: Option<u64>,
    /// Storage of weights and activations.
    pub storage: Storage,
    /// Memory budget, if there was one.
    pub budget: Option<Bytes>,
    /// Prediction of the plan. Absent if there is no plan.
    pub predicted: Option<Predicted>,
    /// Measured values. Absent if the run failed.
    pub measured: Option<Measured>,
    /// Reason of the failure. Absent if the run succeeded.
    pub error: Option<String>,
}

/// Predicted memory of a plan. For a clip, of the part that needs most.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Predicted {
    /// Peak of all GPU memory.
    pub peak: Bytes,
    /// Packed weights that stay on the GPU.
    pub weights: Bytes,
    /// Activations, scratch memory, and data that a budget fetches from host memory.
    pub slots: Bytes,
    /// Parameters of all launches.
    pub parameters: Bytes,
    /// Staging buffers between host and device.
    pub staging: Bytes,
    /// Bytes that a budget keeps in host memory.
    pub host: Bytes,
    /// Bytes that a budget moves between host and device. For a clip, over all parts.
    pub transferred: Bytes,
    /// For a clip, state that its parts keep for the next part.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    pub states: Option<States>,
}

/// Bytes of state that the parts of a clip keep for the next part.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct States {
    /// All bytes, on the device and in host memory.
    pub total: Bytes,
    /// Bytes on the GPU while the part with the highest peak runs. The first part keeps less than
    /// the others.
    pub gpu: Bytes,
}

/// Measured values of one run.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Measured {
    /// Most bytes in GPU buffers at once, counted at each creation.
    pub ledger_peak: Bytes,
    /// Bytes that the allocator had handed out at the end of the run, if the backend reports it.
    pub allocator_allocated: Option<Bytes>,
    /// Bytes that the allocator had reserved from the driver at that time.
    pub allocator_reserved: Option<Bytes>,
    /// Most resident memory of the process. On a CPU driver it includes GPU memory. Linux only.
    pub peak_rss: Option<Bytes>,
    /// Seconds for reading or making the weights, packing and uploading them.
    pub load_seconds: f64,
    /// Seconds for planning, allocating and compiling.
    pub prepare_seconds: f64,
    /// Seconds of the run itself.
    pub seconds: f64,
}

impl Measurement {
    /// True if it is a clip, not an image.
    pub fn is_clip(&self) -> bool {
        self.frames.is_some_and(|frames| frames > 1)
    }

    /// Returns the size of the picture.
    pub fn size(&self) -> Size {
        Size { width: self.width, height: self.height }
    }
}

/// Deserializes a field that may be absent but not null.
fn present<'de, T: Deserialize<'de>, D: Deserializer<'de>>(value: D) -> Result<Option<T>, D::Error> {
    T::deserialize(value).map(Some)
}
