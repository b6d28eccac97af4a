//! The stable text form of a plan, for people, snapshots and bug reports.

use std::fmt;

use crate::plan::{Action, Plan, Resource};
use crate::tensor::Bytes;

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{} -> {}  {:?}  peak {}  ({} weights, {} in {} slots, {} parameters, {} staging)",
            self.input(),
            self.result,
            self.storage,
            self.memory.peak(),
            self.memory.weights,
            self.memory.slots,
            self.slots.len(),
            self.memory.params,
            self.memory.staging,
        )?;
        #[expect(clippy::cast_precision_loss, reason = "shown with three digits")]
        let giga = self.macs() as f64 / 1e9;
        writeln!(
            f,
            "{giga:.3} G multiply-adds, {} steps, {} kernels, largest binding {}",
            self.steps.len(),
            self.variants.len(),
            self.largest_binding()
        )?;
        if self.transferred() > Bytes(0) {
            writeln!(f, "{} over the host's link, {} in host memory", self.transferred(), self.host_bytes())?;
        }
        writeln!(f, "  {:<46} {:>6} {:>12} {:>11}  kernels and slots", "stage", "steps", "G mul-adds", "memory")?;
        let live = self.live_bytes();
        for stage in 0..self.stages.len() {
            self.fmt_stage(stage, &live, f)?;
        }
        Ok(())
    }
}

impl Plan {
    /// Returns the bytes of the buffers that are live at each step.
    pub fn live_bytes(&self) -> Vec<Bytes> {
        let mut begin = vec![0_u64; self.steps.len() + 1];
        let mut end = vec![0_u64; self.steps.len() + 2];
        for buffer in &self.buffers {
            begin[buffer.live.start] += buffer.bytes.0;
            end[buffer.live.end] += buffer.bytes.0;
        }
        let mut live = 0;
        let change = |(begin, end): (&u64, &u64)| {
            live = live + begin - end;
            Bytes(live)
        };
        begin.iter().zip(&end).map(change).take(self.steps.len()).collect()
    }

    fn fmt_stage(&self, stage: usize, live: &[Bytes], f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let indices: Vec<usize> = (0..self.steps.len()).filter(|&index| self.steps[index].stage == stage).collect();
        let macs: u64 = indices.iter().map(|&index| self.steps[index].macs).sum();
        let memory = indices.iter().map(|&index| live[index]).max().unwrap_or_default();
        let mut kernels: Vec<String> = Vec::new();
        for &index in &indices {
            let text = self.kernel_text(index);
            if !kernels.contains(&text) {
                kernels.push(text);
            }
        }
        // A stage of many bands repeats its kernels. The first few texts are enough.
        const SHOWN: usize = 6;
        let more = if kernels.len() > SHOWN { format!(" +{}", kernels.len() - SHOWN) } else { String::new() };
        kernels.truncate(SHOWN);
        #[expect(clippy::cast_precision_loss, reason = "shown with three digits")]
        let giga = macs as f64 / 1e9;
        let name = &self.stages[stage];
        writeln!(
            f,
            "  {name:<46} {:>6} {giga:>12.3} {:>11}  {}{more}",
            indices.len(),
            memory.to_string(),
            kernels.join("; ")
        )
    }

    fn kernel_text(&self, index: usize) -> String {
        match &self.steps[index].action {
            Action::Copy { from, to, .. } => {
                format!("copy s{} s{}", self.buffers[from.0.0].slot.0, self.buffers[to.0.0].slot.0)
            }
            Action::Fetch { to: buffer, .. } => format!("fetch s{}", self.buffers[buffer.0].slot.0),
            Action::Park { from: buffer, .. } => format!("park s{}", self.buffers[buffer.0].slot.0),
            Action::Recall { to: buffer, .. } => format!("recall s{}", self.buffers[buffer.0].slot.0),
            Action::Keep { from: buffer, .. } => format!("keep s{}", self.buffers[buffer.0].slot.0),
            Action::Output { from: buffer, .. } => format!("output s{}", self.buffers[buffer.0].slot.0),
            Action::Dispatch { variant, bindings, .. } => {
                let mut text = self.variants[*variant].file.to_owned();
                for binding in bindings {
                    match binding {
                        Resource::Buffer(buffer) => text.push_str(&format!(" s{}", self.buffers[buffer.0].slot.0)),
                        Resource::Weight(weight) => text.push_str(&format!(" w{}", weight.0)),
                        Resource::Unused => text.push_str(" -"),
                    }
                }
                text
            }
        }
    }
}
