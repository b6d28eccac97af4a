//! Estimates how long a plan takes, to compare plans and to report the cost of a budget. The paces
//! are nominal and belong to no particular machine, because planning reads no clock.

use crate::limits::DeviceKind;
use crate::plan::Plan;
use crate::tensor::Bytes;

/// Rough pace of a kind of device, for one second.
struct Pace {
    /// Multiply-adds, counted as direct convolutions.
    macs: f64,
    /// Bytes moved between host and device.
    link: f64,
    /// Launches and copies.
    steps: f64,
}

/// Returns the nominal pace of a kind of device. For CPU drivers: two cores of a server processor
/// under lavapipe. For GPUs: a mid-range GPU of 2023 with a link of that time.
fn pace(kind: DeviceKind) -> Pace {
    match kind {
        DeviceKind::Cpu => Pace { macs: 5.5e10, link: 4e9, steps: 5e4 },
        DeviceKind::Gpu => Pace { macs: 4e12, link: 1.2e10, steps: 1e5 },
    }
}

/// Returns the seconds for `macs` multiply-adds, `steps` steps, and `moved` bytes between host and
/// device.
#[expect(clippy::cast_precision_loss, reason = "an estimate")]
pub(super) fn seconds(kind: DeviceKind, macs: u64, steps: usize, moved: Bytes) -> f64 {
    let pace = pace(kind);
    macs as f64 / pace.macs + steps as f64 / pace.steps + moved.0 as f64 / pace.link
}

impl Plan {
    /// Returns the seconds that one decode takes on a device of this kind, by nominal pace. The
    /// value is meant for comparing plans.
    pub fn predicted_seconds(&self) -> f64 {
        seconds(self.kind, self.macs(), self.steps.len(), self.transferred())
    }
}
