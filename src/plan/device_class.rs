//! Classes of devices: the figures that planning compares plans by.
//!
//! A class stands for many devices, because an adapter tells its vendor, not its speed. The figures
//! of GPUs are makers' figures of a card in the middle of its class, times the share that
//! `tests/cpu/launches/devices.rs` expects. An unknown GPU counts as a middle class of 32 cores.

use crate::kernels::WORKGROUP;
use crate::limits::{DeviceKind, DeviceLimits, Vendor};

/// Speed of a class of devices.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DeviceClass {
    /// Multiply-adds of products for one second.
    pub(super) macs: f64,
    /// Bytes that launches read and write in one second, from memory and last cache together.
    pub(super) memory: f64,
    /// Bytes moved between host and device in one second.
    pub(super) link: f64,
    /// Seconds from one launch to the next.
    pub(super) launch: f64,
    /// Units that share workgroup memory, of a GPU: SMs, compute units, Xe cores, SPs, Apple's
    /// cores. 0 for CPUs, which any launch keeps busy.
    pub(super) cores: u32,
}

/// Two cores of a server processor under lavapipe. Multiply-adds are counted as direct
/// convolutions; reading and writing is part of them.
const CPU: DeviceClass = DeviceClass { macs: 5.5e10, memory: f64::INFINITY, link: 4e9, launch: 2e-5, cores: 0 };

/// Two such cores without a driver.
const HOST: DeviceClass = DeviceClass { macs: 1.6e11, launch: 1e-5, ..CPU };

impl DeviceClass {
    /// Returns the class of a device with `limits`.
    pub fn of(limits: &DeviceLimits) -> Self {
        let gpu = |cores, tera_macs: f64, memory: f64, link: f64, launch: f64| Self {
            macs: tera_macs * 1e12,
            memory: memory * 1e9,
            link: link * 1e9,
            launch: launch * 1e-6,
            cores,
        };
        match (limits.kind, limits.vendor, limits.unified_memory) {
            (DeviceKind::Cpu, ..) => CPU,
            (DeviceKind::Host, ..) => HOST,
            // RTX 4080 to 4090.
            (_, Vendor::Nvidia, false) => gpu(96, 25.0, 1500.0, 12.0, 2.5),
            // RX 7900 and 9070.
            (_, Vendor::Amd, false) => gpu(64, 14.0, 900.0, 12.0, 3.5),
            // Arc B580.
            (_, Vendor::Intel, false) => gpu(20, 3.8, 600.0, 12.0, 4.3),
            // M-Max and M-Pro.
            (_, Vendor::Apple, _) => gpu(32, 4.0, 400.0, 40.0, 2.7),
            // Jetson Thor and GB10; Radeon 780M to 8060S.
            (_, Vendor::Nvidia, true) => gpu(32, 6.0, 250.0, 30.0, 3.0),
            (_, Vendor::Amd, true) => gpu(16, 2.5, 120.0, 30.0, 4.0),
            // Xe-LPG and Xe2 of laptops.
            (_, Vendor::Intel, true) => gpu(8, 1.2, 120.0, 30.0, 5.2),
            // Phones.
            (_, Vendor::Qualcomm | Vendor::Arm, _) => gpu(8, 0.6, 80.0, 15.0, 6.0),
            (_, Vendor::Other, _) => gpu(32, 8.0, 500.0, 12.0, 4.0),
        }
    }

    /// True for a GPU, whose cores need enough workgroups.
    pub(super) fn is_gpu(&self) -> bool {
        self.cores > 0
    }

    /// Returns the share of the cores that works during a launch of `groups` workgroups: how evenly
    /// they are spread over the cores, and how many loads a core hides behind other invocations.
    #[expect(clippy::cast_precision_loss, reason = "an estimate")]
    pub(super) fn busy(&self, groups: u64) -> f64 {
        // Parallel multiply-adds of a core.
        const LANES: f64 = 128.0;
        // Most invocations in flight for a lane, limited by registers.
        const MOST: f64 = 8.0;
        let per_core = groups.max(1) as f64 / f64::from(self.cores);
        let spread = per_core / per_core.ceil();
        let in_flight = (per_core.max(1.0) * f64::from(WORKGROUP) / LANES).min(MOST);
        // libm's function gives the same bits natively and in browsers, so that plans are the same.
        spread * (1.0 - libm::exp(-in_flight / 2.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_workgroups_leave_cores_idle() {
        let class = DeviceClass::of(&DeviceLimits::webgpu_default());
        assert_eq!(class.cores, 32);
        let busy = [1, 8, 32, 64, 512, 1 << 20].map(|groups| class.busy(groups));
        assert!(busy.is_sorted(), "{busy:?}");
        assert!(busy[0] < 0.01 && busy[5] > 0.95, "{busy:?}");
    }

    #[test]
    fn all_classes_have_speeds() {
        let vendors =
            [Vendor::Amd, Vendor::Apple, Vendor::Arm, Vendor::Intel, Vendor::Nvidia, Vendor::Qualcomm, Vendor::Other];
        for (vendor, unified_memory) in vendors.into_iter().flat_map(|vendor| [(vendor, false), (vendor, true)]) {
            let limits = DeviceLimits { vendor, unified_memory, ..DeviceLimits::webgpu_default() };
            let class = DeviceClass::of(&limits);
            assert!(class.is_gpu(), "{vendor:?}");
            let speeds = [class.macs, class.memory, class.link, 1.0 / class.launch];
            assert!(speeds.iter().all(|speed| *speed > 1e5), "{vendor:?}: {class:?}");
        }
        assert!(!DeviceClass::of(&DeviceLimits { kind: DeviceKind::Cpu, ..DeviceLimits::webgpu_default() }).is_gpu());
    }
}
