//! The memory report: what decodes and encodes were predicted to take and what they took, as one
//! file per machine that programs can read; and the estimates that people use today, to hold beside
//! it. Measures nothing and draws nothing: the faces do.

pub mod estimates;
pub mod published;
mod read;

use serde::{Deserialize, Deserializer, Serialize};

use crate::limits::DeviceLimits;
use crate::tensor::{Bytes, Size, Storage};

/// What [`MemoryReport::schema`] says in every report.
pub const SCHEMA: &str = "wgvae-memory-report";

/// The version of the format that this crate writes, and the newest that it reads. It reads all
/// before it, too.
pub const VERSION: u32 = 2;

/// The first version that knows clips.
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
    /// Where it ran.
    pub machine: Machine,
    /// The adapters measured.
    pub adapters: Vec<Adapter>,
    /// One row for each adapter, model, operation, size, number of frames, precision and budget.
    pub measurements: Vec<Measurement>,
}

/// A machine, without anything that would tell whose it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Machine {
    /// Operating system, as Rust names it: `linux`, `windows`, `macos`.
    pub os: String,
    /// Architecture, as Rust names it: `x86_64`, `aarch64`.
    pub arch: String,
    /// Processors that a program may use at once.
    pub cpus: usize,
}

/// An adapter of the machine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Adapter {
    /// Name, as the driver gives it.
    pub name: String,
    /// `Vulkan`, `Metal`, `Dx12` or `BrowserWebGpu`.
    pub backend: String,
    /// `DiscreteGpu`, `IntegratedGpu`, `VirtualGpu`, `Cpu` or `Other`.
    pub device_type: String,
    /// Driver and its version.
    pub driver: String,
    /// PCI vendor and device.
    pub pci_id: String,
    /// What plans may use.
    pub limits: DeviceLimits,
}

impl Adapter {
    /// Who made it, by its PCI vendor.
    pub fn vendor(&self) -> &str {
        match self.pci_id.split(':').next().unwrap_or_default() {
            "10de" => "NVIDIA",
            "1002" | "1022" => "AMD",
            "8086" => "Intel",
            "106b" => "Apple",
            "13b5" => "Arm",
            "5143" => "Qualcomm",
            "1414" => "Microsoft",
            "1ae0" => "Google",
            "10005" => "Mesa",
            _ => "unknown vendor",
        }
    }
}

/// Which way through the VAE.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Operation {
    /// Latents to pixels.
    Decode,
    /// Pixels to latents.
    Encode,
}

impl Operation {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Decode, Self::Encode];

    /// What one run of it is called.
    pub fn name(self) -> &'static str {
        match self {
            Self::Decode => "decode",
            Self::Encode => "encode",
        }
    }
}

/// Where the weights of a measurement came from. Memory does not depend on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum WeightSource {
    /// Made up, in the shapes of a published model.
    Random,
    /// The command line's embedded model.
    Embedded,
    /// A file.
    File,
}

/// One run in a process of its own.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Measurement {
    /// Index into [`MemoryReport::adapters`].
    pub adapter: usize,
    /// A family's name, `demo`, or the name of a file or folder.
    pub model: String,
    /// Where its weights came from.
    pub weights: WeightSource,
    /// Which way.
    pub operation: Operation,
    /// Columns of the picture.
    pub width: u32,
    /// Rows of the picture.
    pub height: u32,
    /// Pictures of the clip. Absent or 1: an image.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    pub frames: Option<u64>,
    /// How weights and activations are stored.
    pub storage: Storage,
    /// The memory budget, if there was one.
    pub budget: Option<Bytes>,
    /// What the plan says. Absent if there is no plan.
    pub predicted: Option<Predicted>,
    /// What it took. Absent if it failed.
    pub measured: Option<Measured>,
    /// Why it failed. Absent if it did not.
    pub error: Option<String>,
}

/// The memory of a plan; of a clip, that of the part that takes most.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Predicted {
    /// Everything on the GPU together.
    pub peak: Bytes,
    /// Packed weights that stay on the GPU.
    pub weights: Bytes,
    /// Activations, scratch, and what a budget fetches.
    pub slots: Bytes,
    /// Parameters of all launches.
    pub parameters: Bytes,
    /// What data passes through between host and device.
    pub staging: Bytes,
    /// What a budget leaves in host memory.
    pub host: Bytes,
    /// What a budget moves between host and device, of a clip in all its parts.
    pub transferred: Bytes,
    /// Of a clip, what parts keep for the next one.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    pub states: Option<States>,
}

/// What the parts of a clip keep for the next one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct States {
    /// All of it, wherever it is.
    pub total: Bytes,
    /// What of it is on the GPU while the part runs that takes most; the first part keeps less than
    /// the others.
    pub gpu: Bytes,
}

/// What one run took.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Measured {
    /// The most bytes in GPU buffers at once, counted at each creation.
    pub ledger_peak: Bytes,
    /// What the allocator had handed out when the run was over, where the backend can tell.
    pub allocator_allocated: Option<Bytes>,
    /// What the allocator had reserved from the driver for that.
    pub allocator_reserved: Option<Bytes>,
    /// The most memory that the process had resident. On a CPU driver GPU memory is part of it.
    /// Linux only.
    pub peak_rss: Option<Bytes>,
    /// Reading or making the weights, packing and uploading them.
    pub load_seconds: f64,
    /// Planning, allocating, compiling.
    pub prepare_seconds: f64,
    /// The run itself.
    pub seconds: f64,
}

impl Measurement {
    /// Whether it is of a clip, and not of an image.
    pub fn is_clip(&self) -> bool {
        self.frames.is_some_and(|frames| frames > 1)
    }

    /// Size of the picture.
    pub fn size(&self) -> Size {
        Size { width: self.width, height: self.height }
    }

    /// Pixels of the picture.
    pub fn pixels(&self) -> u64 {
        u64::from(self.width) * u64::from(self.height)
    }

    /// Bytes of one stored element.
    pub fn element_bytes(&self) -> u64 {
        self.storage.vec4_bytes() / 4
    }

    /// What the allocator reserved over what it handed out.
    pub fn reserve_ratio(&self) -> Option<f64> {
        let measured = self.measured?;
        let (allocated, reserved) = (measured.allocator_allocated?, measured.allocator_reserved?);
        (allocated > Bytes(0)).then(|| float(reserved) / float(allocated))
    }

    /// Bytes besides the weights for each pixel and each byte of an element: what `InvokeAI` calls
    /// the scaling constant. Once by the ledger, and once by what the allocator reserved. A clip
    /// has none: how long it is does not show in its memory.
    pub fn implied_constants(&self) -> (Option<f64>, Option<f64>) {
        let implied = |total: Bytes| {
            if self.is_clip() {
                return None;
            }
            let working = total.0.saturating_sub(self.predicted?.weights.0);
            Some(float(Bytes(working)) / float(Bytes(self.pixels().checked_mul(self.element_bytes())?)))
        };
        let ledger = self.measured.and_then(|measured| implied(measured.ledger_peak));
        (ledger, self.measured.and_then(|measured| measured.allocator_reserved).and_then(implied))
    }
}

/// A field that may be absent, but is no null.
fn present<'de, T: Deserialize<'de>, D: Deserializer<'de>>(value: D) -> Result<Option<T>, D::Error> {
    T::deserialize(value).map(Some)
}

#[expect(clippy::cast_precision_loss, reason = "for ratios that are shown with a few digits")]
fn float(bytes: Bytes) -> f64 {
    bytes.0 as f64
}
