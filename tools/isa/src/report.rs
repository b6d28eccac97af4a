//! The table for people: a summary first, then all figures.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::devices::DEVICES;
use crate::figures::{Figures, units};
use crate::hot_loop::HotLoop;
use crate::table::{Rows, Table};

/// Start of the file.
const HEAD: &str = "# What drivers make of every kernel

Written by `cargo xtask isa --accept`; `cargo xtask isa` compares with it. No device was there: Mesa's drivers compile for a named one, and nothing runs. Sure are registers, occupancy,
spills and workgroup memory; instructions rank variants of one kernel. The hot loop is the one with the most multiply-adds: those of a lane, of all its instructions (Apple's compiler
does not show its code). Caches, memory and clocks are not seen. NVIDIA's and Apple's own compilers are others.
Times are of a busy machine, with the printing of the code.
";

/// Formats the whole table as Markdown.
pub(crate) fn markdown(table: &Table) -> String {
    let mut text = format!("{HEAD}\nCompilers: {}.\n", table.driver);
    summary(&mut text, table);
    for device in &DEVICES {
        let Some(rows) = table.devices.get(device.id) else { continue };
        let spilling = rows.values().filter(|row| row.native.is_some_and(|figures| figures.spills > 0)).count();
        let _ = writeln!(
            text,
            "\n## {}\n\n`{}`; {}. {spilling} of {} kernels spill.\n",
            device.name,
            device.id,
            units(device.maker),
            rows.len()
        );
        text.push_str("| kernel | workgroup memory | registers | occupancy | spills | scratch | instructions | hot loop | compiled in | in Firefox: registers | occupancy | spills | instructions | hot loop |\n");
        text.push_str("|---|---|---|---|---|---|---|---|---|---|---|---|---|---|\n");
        for (kernel, row) in rows {
            let _ =
                writeln!(text, "| {kernel} | {} |{}{}", row.workgroup_bytes, native(row.native), firefox(row.firefox));
        }
    }
    text
}

fn native(figures: Option<Figures>) -> String {
    figures.map_or_else(
        || " | | | | | | |".to_owned(),
        |Figures { registers, occupancy, spills, scratch, instructions, milliseconds, hot_loop }| {
            format!(
                " {registers} | {occupancy} | {} | {} | {instructions} |{} {milliseconds} ms |",
                marked(spills),
                marked(scratch),
                share(hot_loop)
            )
        },
    )
}

fn firefox(figures: Option<Figures>) -> String {
    figures.map_or_else(
        || " | | | | |".to_owned(),
        |figures| {
            format!(
                " {} | {} | {} | {} |{}",
                figures.registers,
                figures.occupancy,
                marked(figures.spills),
                figures.instructions,
                share(figures.hot_loop)
            )
        },
    )
}

/// Formats the share of multiply-adds among a loop's instructions. Empty if no loop multiplies.
fn share(HotLoop { instructions, multiply_adds }: HotLoop) -> String {
    if instructions == 0 {
        return " |".to_owned();
    }
    format!(" {multiply_adds} / {instructions} = {:.0} % |", f64::from(multiply_adds) / f64::from(instructions) * 100.0)
}

/// Formats a number that should be 0: empty if it is, bold if not.
fn marked(number: u32) -> String {
    if number == 0 { String::new() } else { format!("**{number}**") }
}

/// Adds the worst figures of each kernel file's variants, as this crate compiles them, for each
/// device.
fn summary(text: &mut String, table: &Table) {
    let devices: Vec<_> = DEVICES.iter().filter_map(|device| Some((device, table.devices.get(device.id)?))).collect();
    text.push_str("\nRegisters / occupancy of the worst variant of each kernel, and its spills:\n\n| kernel |");
    devices.iter().for_each(|(device, _)| {
        let _ = write!(text, " {} |", device.id);
    });
    let _ = writeln!(text, "\n|---|{}", "---|".repeat(devices.len()));
    let mut files: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for (place, (_, rows)) in devices.iter().enumerate() {
        for (file, figures) in worst(rows) {
            let spills = if figures.spills > 0 { format!(", **{} spills**", figures.spills) } else { String::new() };
            // Some kernels do not exist for every device.
            let cells = files.entry(file).or_insert_with(|| vec![String::new(); devices.len()]);
            cells[place] = format!("{} / {}{spills}", figures.registers, figures.occupancy);
        }
    }
    for (file, cells) in files {
        let _ = writeln!(text, "| {file} | {} |", cells.join(" | "));
    }
}

/// Returns, for each file, the most registers, the least occupancy and the most spills.
fn worst(rows: &Rows) -> BTreeMap<&str, Figures> {
    let mut files: BTreeMap<&str, Figures> = BTreeMap::new();
    for (kernel, row) in rows {
        let (Some(file), Some(figures)) = (kernel.split(' ').next(), row.native) else { continue };
        let worst = files.entry(file).or_insert(figures);
        worst.registers = worst.registers.max(figures.registers);
        worst.occupancy = worst.occupancy.min(figures.occupancy);
        worst.spills = worst.spills.max(figures.spills);
    }
    files
}

/// Formats one line for each kernel, device and caller, for a terminal.
pub(crate) fn plain(table: &Table) -> String {
    let mut text = String::new();
    for (device, rows) in &table.devices {
        for (kernel, row) in rows {
            for (face, figures) in [("native", row.native), ("firefox", row.firefox)] {
                let Some(figures) = figures else { continue };
                let Figures { registers, occupancy, spills, scratch, instructions, milliseconds, hot_loop } = figures;
                let _ = writeln!(
                    text,
                    "{device:<10} {face:<8} registers {registers:<4} occupancy {occupancy:<5} spills {spills:<4} scratch {scratch:<5} instructions {instructions:<6} hot loop {hot_loop}, {milliseconds:>4} ms  workgroup memory {:<6} {kernel}",
                    row.workgroup_bytes
                );
            }
        }
    }
    text
}
