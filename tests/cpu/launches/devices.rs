//! GPUs with their makers' figures and some guesses about their speed. Only the H200 was measured
//! (`benches/results/h200.md`): its figures that are guesses below follow that.

use wgvae::Storage;
use wgvae::device::{DeviceLimits, Vendor};

/// Properties of a GPU that a prediction needs.
#[derive(Debug)]
pub(super) struct Device {
    /// Common name.
    pub(super) name: &'static str,
    vendor: Vendor,
    /// True if its memory is the host's.
    unified: bool,
    /// True if shaders support halves.
    f16: bool,
    /// Units that share workgroup memory: SMs, compute units, Xe cores, SPs, Apple's cores.
    pub(super) cores: u32,
    /// Parallel multiply-adds of a core, published.
    pub(super) lanes: u32,
    /// Invocations of a wave, as the driver compiles.
    pub(super) wave: u32,
    /// Published f32 peak, TFLOP/s.
    pub(super) peak: f64,
    /// Share of the peak that a product with hidden loads reaches: a guess from the instructions of
    /// the loop and from results of others.
    pub(super) reached: f64,
    /// Published memory bandwidth, GB/s; of the H200, what a copy reaches.
    pub(super) memory: f64,
    /// Size of the last cache, MiB.
    pub(super) cache_mib: u64,
    /// Bandwidth of the last cache, GB/s: a guess from measurements of others.
    pub(super) cache: f64,
    /// Time from one launch to the next, microseconds: a guess.
    pub(super) launch: f64,
    /// Bandwidth between host and device, GB/s: a guess of what copies reach on its bus, or in the
    /// memory that both share.
    pub(super) link: f64,
}

#[rustfmt::skip]
pub(super) const DEVICES: [Device; 10] = [
    Device { name: "H200",        vendor: Vendor::Nvidia,   unified: false, f16: true,  cores: 132, lanes: 128, wave: 32, peak: 67.0,  reached: 0.60, memory: 4300.0, cache_mib: 50, cache: 5000.0, launch: 6.0, link: 40.0 },
    Device { name: "RTX 5090",    vendor: Vendor::Nvidia,   unified: false, f16: true,  cores: 170, lanes: 128, wave: 32, peak: 104.8, reached: 0.85, memory: 1792.0, cache_mib: 96, cache: 6000.0, launch: 2.5, link: 40.0 },
    Device { name: "RTX 4090",    vendor: Vendor::Nvidia,   unified: false, f16: true,  cores: 128, lanes: 128, wave: 32, peak: 82.6,  reached: 0.85, memory: 1008.0, cache_mib: 72, cache: 5000.0, launch: 2.5, link: 20.0 },
    Device { name: "RX 9070 XT",  vendor: Vendor::Amd,      unified: false, f16: true,  cores: 64,  lanes: 128, wave: 64, peak: 48.7,  reached: 0.57, memory: 640.0,  cache_mib: 64, cache: 2500.0, launch: 3.5, link: 40.0 },
    Device { name: "RX 7900 XTX", vendor: Vendor::Amd,      unified: false, f16: true,  cores: 96,  lanes: 128, wave: 64, peak: 61.4,  reached: 0.57, memory: 960.0,  cache_mib: 96, cache: 3000.0, launch: 3.5, link: 20.0 },
    Device { name: "Arc B580",    vendor: Vendor::Intel,    unified: false, f16: true,  cores: 20,  lanes: 128, wave: 16, peak: 13.7,  reached: 0.55, memory: 456.0,  cache_mib: 18, cache: 1500.0, launch: 4.3, link: 10.0 },
    Device { name: "M3 Max",      vendor: Vendor::Apple,    unified: true,  f16: true,  cores: 40,  lanes: 128, wave: 32, peak: 14.2,  reached: 0.70, memory: 400.0,  cache_mib: 48, cache: 800.0,  launch: 2.7, link: 100.0 },
    Device { name: "M1",          vendor: Vendor::Apple,    unified: true,  f16: true,  cores: 8,   lanes: 128, wave: 32, peak: 2.6,   reached: 0.70, memory: 68.0,   cache_mib: 8,  cache: 200.0,  launch: 2.7, link: 20.0 },
    Device { name: "Xe-LPG",      vendor: Vendor::Intel,    unified: true,  f16: true,  cores: 8,   lanes: 128, wave: 8,  peak: 4.6,   reached: 0.50, memory: 100.0,  cache_mib: 4,  cache: 400.0,  launch: 5.2, link: 20.0 },
    Device { name: "Adreno 750",  vendor: Vendor::Qualcomm, unified: true,  f16: false, cores: 6,   lanes: 256, wave: 64, peak: 2.8,   reached: 0.40, memory: 77.0,   cache_mib: 4,  cache: 200.0,  launch: 6.0, link: 15.0 },
];

impl Device {
    /// Returns the limits to plan for.
    pub(super) fn limits(&self) -> DeviceLimits {
        DeviceLimits {
            shader_f16: self.f16,
            vendor: self.vendor,
            unified_memory: self.unified,
            ..DeviceLimits::webgpu_default()
        }
    }

    /// Returns the storage of halves that it supports.
    pub(super) fn storage(&self) -> Storage {
        if self.f16 { Storage::F16 } else { Storage::PackedF16 }
    }
}
