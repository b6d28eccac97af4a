//! The devices to compile for. None of them is present: Mesa's drivers find them because a shim
//! answers in place of the kernel driver.

use std::path::{Path, PathBuf};
use std::process::Command;

use wgvae::device::{MatrixUnits, Vendor};

/// Manufacturer of a device, which determines the names of its statistics.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Maker {
    Amd,
    Nvidia,
    Intel,
    Qualcomm,
    Apple,
}

impl Maker {
    /// Returns the vendor for plans.
    pub(crate) fn vendor(self) -> Vendor {
        match self {
            Self::Amd => Vendor::Amd,
            Self::Nvidia => Vendor::Nvidia,
            Self::Intel => Vendor::Intel,
            Self::Qualcomm => Vendor::Qualcomm,
            Self::Apple => Vendor::Apple,
        }
    }
}

impl Maker {
    /// Returns the matrix units of its devices here, as their drivers offer them to wgpu. Intel's
    /// and Qualcomm's are not square, or missing.
    pub(crate) fn units(self) -> Option<MatrixUnits> {
        match self {
            Self::Amd => Some(MatrixUnits { side: 16, lanes: 64 }),
            Self::Nvidia => Some(MatrixUnits { side: 16, lanes: 32 }),
            Self::Intel | Self::Qualcomm | Self::Apple => None,
        }
    }
}

/// A device, and the settings that make a driver see it.
#[derive(Debug)]
pub(crate) struct Device {
    /// Name in the command line and the tables.
    pub(crate) id: &'static str,
    /// Name for people.
    pub(crate) name: &'static str,
    pub(crate) maker: Maker,
    /// Environment variable and value that tell a shim which device to be.
    tell: (&'static str, &'static str),
}

/// One device of each common architecture for which drivers and shims exist. For NVIDIA and Apple
/// these are Mesa's compilers, not the vendors' own.
pub(crate) const DEVICES: [Device; 8] = [
    Device { id: "navi31", name: "AMD RX 7900 XTX (RDNA3)", maker: Maker::Amd, tell: ("AMDGPU_GPU_ID", "navi31") },
    Device { id: "gfx1201", name: "AMD RX 9070 (RDNA4)", maker: Maker::Amd, tell: ("AMDGPU_GPU_ID", "gfx1201") },
    Device { id: "ada", name: "NVIDIA RTX 40 (Ada), by NVK", maker: Maker::Nvidia, tell: ("NOUVEAU_CHIPSET", "192") },
    Device {
        id: "blackwell",
        name: "NVIDIA RTX 50 (Blackwell), by NVK",
        maker: Maker::Nvidia,
        tell: ("NOUVEAU_CHIPSET", "1b2"),
    },
    Device { id: "b580", name: "Intel Arc B580 (Xe2)", maker: Maker::Intel, tell: ("XE_ID", "e20b") },
    Device { id: "xe-lpg", name: "Intel Meteor Lake (Xe-LPG)", maker: Maker::Intel, tell: ("XE_ID", "7d55") },
    Device { id: "adreno750", name: "Qualcomm Adreno 750", maker: Maker::Qualcomm, tell: ("FD_GPU_ID", "750") },
    Device { id: "m1", name: "Apple M1, by Honeykrisp", maker: Maker::Apple, tell: ("ASAHI_GPU", "") },
];

impl Device {
    /// Returns the command that runs `program` with Mesa's loader and this device's driver. `mesa`
    /// is the folder into which `cargo xtask isa` has unpacked both.
    pub(crate) fn command(&self, mesa: &Path, program: &Path) -> Command {
        let libraries = mesa.join("root/usr/lib/x86_64-linux-gnu");
        let (driver, shim) = self.driver();
        let shim = if self.maker == Maker::Intel { mesa.join(shim) } else { libraries.join(shim) };
        let mut command = Command::new(libraries.join("ld-linux-x86-64.so.2"));
        command.arg("--library-path").arg(&libraries).arg("--preload").arg(shim).arg(program);
        command
            .env("VK_DRIVER_FILES", manifest(mesa, driver))
            .env(self.tell.0, self.tell.1)
            .env("MESA_SHADER_CACHE_DISABLE", "true")
            .env("INTEL_XE_IGNORE_EXPERIMENTAL_WARNING", "1");
        command
    }

    /// Returns the driver's name and the shim's file. Debian has no shim for Intel; `xe_shim.c` is
    /// ours.
    fn driver(&self) -> (&'static str, &'static str) {
        match self.maker {
            Maker::Amd => ("radeon", "libamdgpu_noop_drm_shim.so"),
            Maker::Nvidia => ("nouveau", "libnouveau_noop_drm_shim.so"),
            Maker::Intel => ("intel", "libxe_shim.so"),
            Maker::Qualcomm => ("freedreno", "libfreedreno_noop_drm_shim.so"),
            Maker::Apple => ("asahi", "libasahi_noop_drm_shim.so"),
        }
    }
}

fn manifest(mesa: &Path, driver: &str) -> PathBuf {
    mesa.join(format!("{driver}.json"))
}
