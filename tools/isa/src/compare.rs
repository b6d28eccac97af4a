//! Comparison of kernels with the accepted table.

use crate::figures::Figures;
use crate::table::Table;

/// Reciprocal of the accepted growth in instructions: 1/20.
const MORE_INSTRUCTIONS: u32 = 20;

/// Result of a comparison.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    /// Regressions, one line each.
    pub(crate) worse: Vec<String>,
    /// Number of kernels with at least one better figure and none that is worse.
    pub(crate) better: usize,
    /// Rows that only the old table has, one line each.
    pub(crate) gone: Vec<String>,
}

/// Compares all rows of `new` with those of `old`, on the devices that both have.
pub(crate) fn compare(new: &Table, old: &Table) -> Findings {
    let mut findings = Findings::default();
    for (device, rows) in &new.devices {
        let old_rows = old.devices.get(device);
        for (kernel, row) in rows {
            let old_row = old_rows.and_then(|rows| rows.get(kernel));
            for (face, new, old) in [
                ("native", row.native, old_row.and_then(|row| row.native)),
                ("firefox", row.firefox, old_row.and_then(|row| row.firefox)),
            ] {
                let Some(new) = new else { continue };
                let found = worse(&new, old.as_ref());
                findings.better += usize::from(found.is_empty() && old.is_some_and(|old| is_better(&new, &old)));
                findings.worse.extend(found.iter().map(|what| format!("{device}: {kernel}, {face}: {what}")));
            }
        }
        let gone = old_rows.into_iter().flatten().filter(|(kernel, _)| !rows.contains_key(*kernel));
        findings.gone.extend(gone.map(|(kernel, _)| format!("{device}: {kernel}")));
    }
    findings
}

/// Lists the regressions of a kernel. `old` is its accepted row, or `None` if it is new.
fn worse(new: &Figures, old: Option<&Figures>) -> Vec<String> {
    let mut found = Vec::new();
    if new.spills > 0 {
        found.push(format!("{} spills, expected none", new.spills));
    }
    let Some(old) = old else {
        found.push("not in the table".to_owned());
        return found;
    };
    if new.scratch > old.scratch {
        found.push(format!("{} bytes of scratch, expected at most {}", new.scratch, old.scratch));
    }
    if new.occupancy < old.occupancy {
        found.push(format!("occupancy {}, expected at least {}", new.occupancy, old.occupancy));
    }
    let most = old.instructions + old.instructions / MORE_INSTRUCTIONS;
    if new.instructions > most {
        found.push(format!("{} instructions, expected at most {most}", new.instructions));
    }
    // Compared per multiply-add, because loops may be unrolled more or less.
    let (before, after) = (old.hot_loop, new.hot_loop);
    let grown = u64::from(after.instructions) * u64::from(before.multiply_adds);
    let allowed = u64::from(before.instructions) * u64::from(after.multiply_adds);
    if before.multiply_adds > 0 && grown > allowed + allowed / u64::from(MORE_INSTRUCTIONS) {
        found.push(format!("the hot loop has {after}, expected {before} or not much less"));
    }
    found
}

fn is_better(new: &Figures, old: &Figures) -> bool {
    new.spills < old.spills || new.occupancy > old.occupancy || new.instructions < old.instructions
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figures(occupancy: u32, spills: u32, instructions: u32) -> Figures {
        Figures::from([64, occupancy, spills, 0, instructions, 10, 0, 0])
    }

    fn hot_loop(multiply_adds: u32, instructions: u32) -> Figures {
        Figures::from([64, 16, 0, 0, 1000, 10, multiply_adds, instructions])
    }

    #[test]
    fn what_stays_passes() {
        let old = figures(16, 0, 1000);
        assert!(worse(&old, Some(&old)).is_empty());
        assert!(worse(&figures(20, 0, 1050), Some(&figures(16, 0, 1000))).is_empty());
        assert!(worse(&hot_loop(512, 610), Some(&hot_loop(1024, 1200))).is_empty());
    }

    #[test]
    fn what_gets_worse_is_told() {
        let old = figures(16, 0, 1000);
        assert_eq!(worse(&figures(16, 1, 1000), Some(&old)), ["1 spills, expected none"]);
        let spilled = figures(16, 3, 1000);
        assert_eq!(worse(&spilled, Some(&spilled)), ["3 spills, expected none"]);
        assert_eq!(worse(&figures(12, 0, 1000), Some(&old)), ["occupancy 12, expected at least 16"]);
        assert_eq!(worse(&figures(16, 0, 1051), Some(&old)), ["1051 instructions, expected at most 1050"]);
        assert_eq!(worse(&old, None), ["not in the table"]);
        let found = worse(&hot_loop(512, 640), Some(&hot_loop(1024, 1200)));
        assert_eq!(
            found,
            [
                "the hot loop has 512 multiply-adds of 640 instructions, expected 1024 multiply-adds of 1200 instructions or not much less"
            ]
        );
        let lost = worse(&hot_loop(0, 0), Some(&hot_loop(1024, 1200)));
        assert!(lost.is_empty(), "a loop that is written out is no loop: {lost:?}");
    }
}
