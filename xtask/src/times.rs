//! Times of the steps of a task, printed after each step, and as a table at the end, whether the
//! task succeeded or not.

use std::time::{Duration, Instant};

use anyhow::Result;

/// Steps so far: name, time, and true if it succeeded. Prints them when dropped.
#[derive(Default)]
pub(crate) struct Times {
    steps: Vec<(&'static str, Duration, bool)>,
}

impl Times {
    /// Runs `task` as the step `name`.
    pub(crate) fn step<T>(&mut self, name: &'static str, task: impl FnOnce() -> Result<T>) -> Result<T> {
        let start = Instant::now();
        let result = task();
        self.steps.push((name, start.elapsed(), result.is_ok()));
        // Also now, because a task that is killed prints no table.
        self.print(self.steps.len() - 1);
        result
    }

    fn print(&self, index: usize) {
        let (name, time, went_well) = self.steps[index];
        eprintln!("xtask: {:>6} s  {name}{}", time.as_secs(), if went_well { "" } else { ": failed" });
    }
}

impl Drop for Times {
    fn drop(&mut self) {
        let total: Duration = self.steps.iter().map(|(_, time, _)| *time).sum();
        (0..self.steps.len()).for_each(|index| self.print(index));
        eprintln!("xtask: {:>6} s  in all", total.as_secs());
    }
}
