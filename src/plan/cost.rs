//! Estimates how long a plan takes, to compare plans, to report the cost of a budget and to cut
//! submissions. The speeds are those of a [`DeviceClass`] and belong to no particular machine,
//! because planning reads no clock.

use std::ops::Range;

use bytemuck::pod_read_unaligned;

use crate::kernels::matmul::{self, MatmulParams};
use crate::kernels::pixel_norm::{self, PixelNormParams};
use crate::kernels::winograd::POINTS;
use crate::kernels::{WORKGROUP, conv2d_depthwise, linear_attention};
use crate::limits::DeviceKind;
use crate::plan::device_class::DeviceClass;
use crate::plan::{Action, BufferId, HostSource, Plan, Resource, Step};
use crate::tensor::Bytes;

/// Kernels of products.
const PRODUCTS: [&str; 4] = [matmul::REGISTER.file, matmul::QUAD.file, matmul::SHARED.file, matmul::MATRIX.file];

impl DeviceClass {
    /// Returns the seconds for `macs` multiply-adds, counted as direct convolutions, `steps` steps,
    /// and `moved` bytes between host and device. For schedules, whose launches are not known yet.
    #[expect(clippy::cast_precision_loss, reason = "an estimate")]
    pub(super) fn seconds(&self, macs: u64, steps: usize, moved: Bytes) -> f64 {
        // Winograd multiplies a quarter as often. Its transforms, starving launches and all else
        // take about half of the time.
        const SAVED: f64 = 2.0;
        let saved = if self.is_gpu() { SAVED } else { 1.0 };
        macs as f64 / (self.macs * saved) + steps as f64 * self.launch + moved.0 as f64 / self.link
    }
}

impl Plan {
    /// Returns the number of multiply-adds, counted as direct convolutions and products.
    pub fn macs(&self) -> u64 {
        self.steps.iter().map(|step| step.macs).sum()
    }

    /// Returns the bytes that `action` moves from the host to the device, and those that it moves
    /// back, without rows of the result.
    pub(super) fn transfer(&self, action: &Action) -> [Bytes; 2] {
        let whole = |buffer: &BufferId| self.buffers[buffer.0].bytes;
        match action {
            Action::Fetch { to, .. } => [whole(to), Bytes(0)],
            Action::Recall { state, part, to } if self.is_on_host(*state, *part) => [whole(to), Bytes(0)],
            Action::Park { from, .. } => [Bytes(0), whole(from)],
            Action::Keep { state, part, bytes, .. } if self.is_on_host(*state, *part) => [Bytes(0), Bytes(*bytes)],
            Action::Dispatch { .. }
            | Action::Copy { .. }
            | Action::Recall { .. }
            | Action::Keep { .. }
            | Action::Output { .. } => [Bytes(0); 2],
        }
    }

    /// Returns the bytes that one decode moves between host and device because the budget is short.
    pub fn transferred(&self) -> Bytes {
        let is_input = |step: &&Step| matches!(step.action, Action::Fetch { from: HostSource::Input(_), .. });
        self.steps.iter().filter(|step| !is_input(step)).flat_map(|step| self.transfer(&step.action)).sum()
    }

    /// Returns the seconds that one decode takes on a device of this class. The value is meant for
    /// comparing plans.
    pub fn predicted_seconds(&self) -> f64 {
        if self.class.is_gpu() {
            return self.steps.iter().map(|step| self.gpu_seconds(step)).sum();
        }
        self.class.seconds(self.macs(), self.steps.len(), self.transferred())
    }

    /// Returns the seconds of the steps from `start` on, without transfers on a CPU.
    pub(super) fn seconds_from(&self, start: usize) -> f64 {
        let steps = &self.steps[start..];
        if self.class.is_gpu() {
            return steps.iter().map(|step| self.gpu_seconds(step)).sum();
        }
        self.class.seconds(steps.iter().map(|step| step.macs).sum(), steps.len(), Bytes(0))
    }

    /// Returns the seconds of one step on a GPU: multiply-adds or bytes, whichever takes longer, by
    /// the share of the cores that the launch keeps busy.
    #[expect(clippy::cast_precision_loss, reason = "an estimate")]
    fn gpu_seconds(&self, step: &Step) -> f64 {
        let class = &self.class;
        let working = match &step.action {
            Action::Dispatch { variant, workgroups, params, bindings } => {
                let groups = workgroups.iter().map(|count| u64::from(*count)).product();
                // Winograd's products count as a direct convolution.
                let saved = if workgroups[2] >= POINTS { 4.0 } else { 1.0 };
                let computing = step.macs as f64 / (class.macs * saved);
                let params = &self.params[params.clone()];
                let touched = match self.variants[*variant].file {
                    file if PRODUCTS.contains(&file) => self.touched_by_product(params, workgroups[2]),
                    file if file == pixel_norm::INTERFACE.file => self.touched_by_pixel_norm(params),
                    file => self.touched(file, groups, bindings),
                };
                let moving = touched as f64 / class.memory;
                computing.max(moving) / class.busy(groups)
            }
            Action::Copy { bytes, .. } => 2.0 * *bytes as f64 / class.memory,
            action => self.transfer(action).into_iter().sum::<Bytes>().0 as f64 / class.link,
        };
        class.launch + working
    }

    /// Returns the bytes that a launch of `groups` workgroups reads and writes, roughly: no more
    /// than what its invocations move in one turn, and no more than what it binds.
    fn touched(&self, file: &str, groups: u64, bindings: &[Resource]) -> u64 {
        // 36 elements of a tile on one side of a transform, 9 or 16 on the other.
        const TRANSFORM: u64 = 450;
        // Four pixels of two halves of the channels in, of one out.
        const DEPTHWISE: u64 = 192;
        // Four channels of the pixels of a run.
        const LINEAR_SUMS: u64 = 1024;
        // Four pixels in and out.
        const LINEAR_APPLY: u64 = 128;
        // One vec4 in and one out.
        const OTHERS: u64 = 32;
        let bound: u64 = bindings.iter().map(|resource| self.bound(resource)).sum();
        let each = match file {
            _ if file.starts_with("winograd") => TRANSFORM,
            _ if file == conv2d_depthwise::INTERFACE.file => DEPTHWISE,
            _ if file == linear_attention::SUMS.file => LINEAR_SUMS,
            _ if file == linear_attention::APPLY.file => LINEAR_APPLY,
            _ => OTHERS,
        };
        bound.min(groups * u64::from(WORKGROUP) * each)
    }

    /// Returns the bytes that a norm of pixels reads and writes.
    fn touched_by_pixel_norm(&self, params: &[u8]) -> u64 {
        let PixelNormParams { pixels, frames, channels4, .. } = pod_read_unaligned(params);
        2 * u64::from(pixels) * u64::from(frames) * u64::from(channels4) * self.storage.vec4_bytes()
    }

    /// Returns the bytes that a product with these parameters and `entries` batch entries reads and
    /// writes, each once.
    fn touched_by_product(&self, params: &[u8], entries: u32) -> u64 {
        let MatmulParams { m, n4, k4, batch, .. } = pod_read_unaligned(params);
        let [m, n4, k4, batch, entries] = [m, n4, k4, batch, entries].map(u64::from);
        let storage = if batch == u64::from(POINTS) { self.storage.transformed() } else { self.storage };
        (entries * m * (k4 + n4) + batch * n4 * k4 * 4) * storage.vec4_bytes()
    }

    /// Returns the size of a bound buffer.
    fn bound(&self, resource: &Resource) -> u64 {
        match resource {
            Resource::Buffer(buffer) => self.buffers[buffer.0].bytes.0,
            Resource::Weight(weight) => self.weights[weight.0].bytes.0,
            Resource::Unused => 0,
        }
    }

    /// Splits the steps into ranges to submit together. Each range has a [work](Self::work) near
    /// `work`, or is a single step.
    pub fn submissions(&self, work: u64) -> Vec<Range<usize>> {
        let mut result = Vec::new();
        let mut start = 0;
        while start < self.steps.len() {
            #[expect(clippy::cast_precision_loss, reason = "an estimate")]
            let end = self.submission_end(start, work as f64, |step| self.work(step) as f64);
            result.push(start..end);
            start = end;
        }
        result
    }

    /// Returns the end of a submission that begins with step `start`: the step after its last.
    /// `taken` gives the cost of a step. The sum of costs comes as near to `target` as it can with
    /// at least one step.
    pub fn submission_end(&self, start: usize, target: f64, taken: impl Fn(&Step) -> f64) -> usize {
        let mut sum = 0.0;
        for (index, step) in self.steps.iter().enumerate().skip(start) {
            let next = sum + taken(step);
            if index > start && next - target > target - sum {
                return index;
            }
            sum = next;
        }
        self.steps.len()
    }

    /// Returns the cost of `step`, in multiply-adds that would take as long.
    pub fn work(&self, step: &Step) -> u64 {
        // A launch or copy costs something even if it multiplies nothing.
        const STEP_MACS: u64 = 500_000;
        let result = match step.action {
            Action::Output { from, .. } => self.buffers[from.0].bytes,
            _ => Bytes(0),
        };
        let moved = result + self.transfer(&step.action).into_iter().sum();
        step.macs + STEP_MACS + self.memory_work(step) + self.transfer_work(moved.0)
    }

    /// Returns the cost of reading and writing everything that `step` binds, in multiply-adds that
    /// would take as long. Only the order of magnitude is right.
    fn memory_work(&self, step: &Step) -> u64 {
        const PER_BYTE: u64 = 16;
        let moved = match &step.action {
            Action::Copy { bytes, .. } => 2 * bytes,
            action => action.dispatch().map_or(0, |(_, bindings)| bindings.iter().map(|bound| self.bound(bound)).sum()),
        };
        moved * PER_BYTE
    }

    /// Returns the cost of moving `bytes` between host and device, in multiply-adds that would take
    /// as long. Only the order of magnitude is right.
    pub fn transfer_work(&self, bytes: u64) -> u64 {
        let per_byte = match self.kind {
            DeviceKind::Cpu | DeviceKind::Host => 2,
            DeviceKind::Gpu => 16,
        };
        bytes * per_byte
    }
}
