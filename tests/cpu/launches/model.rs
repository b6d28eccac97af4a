//! Model of the time of a plan's launches on a GPU, from their multiply-adds, bytes, and use of the
//! cores. Its error is about 40 %.

use std::collections::BTreeMap;

use wgvae::plan::{Action, HostSource, Plan, Resource};

use super::devices::Device;
use super::work::{Work, work};

/// Seconds that a core waits for data outside its own caches.
const LATENCY: f64 = 3e-7;
/// Workgroups per core below which a launch leaves cores waiting.
pub(super) const WORKGROUPS_PER_CORE: u32 = 2;

/// All launches of one kind.
#[derive(Debug, Clone, Default)]
pub(super) struct Kind {
    pub(super) launches: u64,
    /// Bytes that they touch, each counted once per launch; and the bytes of these that no cache
    /// holds.
    pub(super) moved: u64,
    pub(super) from_memory: u64,
    /// Workgroups of the median launch: half of the time is spent in launches with at most as many.
    pub(super) workgroups: u64,
    /// Waves per core in that launch.
    pub(super) waves: f64,
    pub(super) seconds: f64,
    /// Seconds in launches that starve the cores.
    pub(super) starved: f64,
    /// Workgroups and seconds of each launch.
    each: Vec<(u64, f64)>,
}

/// Predicted time of one decode on a device, by kind of launch.
#[derive(Debug, Default)]
pub(super) struct Prediction {
    pub(super) kinds: BTreeMap<&'static str, Kind>,
    pub(super) seconds: f64,
}

/// Predicts `plan` on `device`.
pub(super) fn predict(plan: &Plan, device: &Device) -> Prediction {
    let mut prediction = Prediction::default();
    for step in &plan.steps {
        match &step.action {
            Action::Dispatch { variant, workgroups, params, bindings } => {
                let work = work(&plan.variants[*variant], *workgroups, &plan.params[params.clone()]);
                let groups = workgroups.iter().map(|count| u64::from(*count)).product();
                prediction.launch(device, &work, groups, &sizes(plan, bindings));
            }
            Action::Copy { bytes, .. } => prediction.copy(device, *bytes),
            Action::Fetch { from: HostSource::Input(_), .. } | Action::Output { .. } => {}
            Action::Fetch { to, .. } => prediction.transfer(device, plan.buffers[to.0].bytes.0),
            Action::Park { from, .. } => prediction.transfer(device, plan.buffers[from.0].bytes.0),
            Action::Recall { state, part, to } => {
                prediction.state(device, plan.is_on_host(*state, *part), plan.buffers[to.0].bytes.0);
            }
            Action::Keep { state, part, bytes, .. } => {
                prediction.state(device, plan.is_on_host(*state, *part), *bytes);
            }
        }
    }
    for kind in prediction.kinds.values_mut() {
        kind.take_middle(device);
    }
    prediction
}

/// Returns the bytes of each bound buffer.
fn sizes(plan: &Plan, bindings: &[Resource]) -> Vec<u64> {
    let size = |resource: &Resource| match resource {
        Resource::Buffer(buffer) => plan.buffers[buffer.0].bytes.0,
        Resource::Weight(weight) => plan.weights[weight.0].bytes.0,
        Resource::Unused => 0,
    };
    bindings.iter().map(size).collect()
}

#[expect(clippy::cast_precision_loss, reason = "an estimate")]
impl Prediction {
    fn launch(&mut self, device: &Device, work: &Work, groups: u64, sizes: &[u64]) {
        let busy = busy(device, groups, work.workgroup);
        let compute = work.macs as f64 * 2.0 / (device.peak * 1e12 * device.reached);
        // A buffer that fits into a third of the last cache, beside the two others of a launch, is
        // still there from the launch that wrote it.
        let missed = |size: u64| size > (device.cache_mib << 20) / 3;
        let once: u64 = work.moved.iter().map(|moved| moved.once).sum();
        let all: u64 = work.moved.iter().map(|moved| moved.all).sum();
        let from_memory: u64 =
            work.moved.iter().zip(sizes).filter(|(_, size)| missed(**size)).map(|(moved, _)| moved.once).sum();
        let moving = (all as f64 / (device.cache * 1e9)).max(from_memory as f64 / (device.memory * 1e9));
        let waiting = work.turns as f64 * LATENCY;
        let seconds = device.launch * 1e-6 + (compute.max(moving) / busy).max(waiting);
        let kind = self.kinds.entry(work.name).or_default();
        kind.launches += 1;
        kind.moved += once;
        kind.from_memory += from_memory;
        kind.seconds += seconds;
        kind.each.push((groups, seconds));
        kind.waves = f64::from(work.workgroup.div_ceil(device.wave));
        if groups < u64::from(WORKGROUPS_PER_CORE * device.cores) {
            kind.starved += seconds;
        }
        self.seconds += seconds;
    }

    /// Adds a copy between two runs' memory, which is on the host or on the device.
    fn state(&mut self, device: &Device, on_host: bool, bytes: u64) {
        if on_host { self.transfer(device, bytes) } else { self.copy(device, bytes) }
    }

    fn transfer(&mut self, device: &Device, bytes: u64) {
        let seconds = device.launch * 1e-6 + bytes as f64 / (device.link * 1e9);
        let kind = self.kinds.entry("transfer").or_default();
        kind.launches += 1;
        kind.moved += bytes;
        kind.seconds += seconds;
        self.seconds += seconds;
    }

    fn copy(&mut self, device: &Device, bytes: u64) {
        let seconds = device.launch * 1e-6 + 2.0 * bytes as f64 / (device.memory * 1e9);
        let kind = self.kinds.entry("copy").or_default();
        kind.launches += 1;
        kind.moved += 2 * bytes;
        kind.from_memory += 2 * bytes;
        kind.seconds += seconds;
        self.seconds += seconds;
    }
}

/// Returns the share of the cores that works: how evenly workgroups are spread over them, and how
/// many loads a core hides behind its other invocations.
#[expect(clippy::cast_precision_loss, reason = "an estimate")]
fn busy(device: &Device, groups: u64, workgroup: u32) -> f64 {
    // Most invocations in flight per lane, limited by registers.
    const MOST: f64 = 8.0;
    let per_core = groups as f64 / f64::from(device.cores);
    let spread = per_core / per_core.ceil();
    let in_flight = (per_core.max(1.0) * f64::from(workgroup) / f64::from(device.lanes)).min(MOST);
    spread * (1.0 - (-in_flight / 2.0).exp())
}

impl Kind {
    /// Sets `workgroups` and `waves` to those of the median launch: the one at half of the time,
    /// sorted by workgroups.
    #[expect(clippy::cast_precision_loss, reason = "an estimate")]
    fn take_middle(&mut self, device: &Device) {
        self.each.sort_by_key(|(groups, _)| *groups);
        let mut rest = self.seconds / 2.0;
        for (groups, seconds) in &self.each {
            self.workgroups = *groups;
            rest -= seconds;
            if rest <= 0.0 {
                break;
            }
        }
        self.waves *= self.workgroups as f64 / f64::from(device.cores);
    }
}
