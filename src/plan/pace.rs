//! About how long a plan takes, for comparing plans and for saying what a budget costs. The paces
//! are nominal, not those of any one machine: a plan knows no clock.

use crate::limits::DeviceKind;
use crate::plan::Plan;
use crate::tensor::Bytes;

/// What a kind of device does in a second, roughly.
struct Pace {
    /// Multiply-adds, counted as direct convolutions.
    macs: f64,
    /// Bytes between host and device.
    link: f64,
    /// Launches and copies.
    steps: f64,
}

/// Two cores of a server processor under lavapipe; a GPU of the middle of 2023 on a link of its
/// time.
fn pace(kind: DeviceKind) -> Pace {
    match kind {
        DeviceKind::Cpu => Pace { macs: 5.5e10, link: 4e9, steps: 5e4 },
        DeviceKind::Gpu => Pace { macs: 4e12, link: 1.2e10, steps: 1e5 },
    }
}

/// Seconds for so many multiply-adds, steps, and bytes moved between host and device.
#[expect(clippy::cast_precision_loss, reason = "an estimate")]
pub(super) fn seconds(kind: DeviceKind, macs: u64, steps: usize, moved: Bytes) -> f64 {
    let pace = pace(kind);
    macs as f64 / pace.macs + steps as f64 / pace.steps + moved.0 as f64 / pace.link
}

impl Plan {
    /// About how long one decode takes on a device of this kind, by nominal paces. Good for
    /// comparing plans.
    pub fn predicted_seconds(&self) -> f64 {
        seconds(self.kind, self.macs(), self.steps.len(), self.transferred())
    }
}
