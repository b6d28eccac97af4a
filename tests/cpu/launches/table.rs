//! Predictions as a page of tables.

use std::fmt::Write as _;

use super::devices::DEVICES;
use super::model::{Kind, Prediction};
use super::{Decode, FAMILIES, Fast, HOT, SIDES};

/// Decode whose launches are shown for each device.
pub(super) const SHOWN: (&str, u32) = ("sd15", 1024);

const HEAD: &str = "# What plans give GPUs to do

Written by `UPDATE_SNAPSHOTS=1 cargo test --release --test cpu launches`. Bytes, launches and workgroups are the plans' own; times are those of a
model (`tests/cpu/launches/model.rs`): multiply-adds by the published peak and by how many workgroups and invocations a core has to hide its loads, bytes by the last cache or by memory,
loops whose turns wait for each other by their latency, launches by their number. An order of magnitude is sure, which kernel takes most is likely, a time is good to some 40 %.
The H200's figures follow a [measurement](h200.md); the other devices were not there.
";

pub(super) const WAYS_HEAD: &str = "# What people run, predicted

Written by `UPDATE_SNAPSHOTS=1 cargo test --release --test cpu launches`, with the model and the warnings of [launches.md](launches.md). Each cell has milliseconds and the peak in MiB. Storage is\nhalves. A part is a later part of a clip. Without \"parking\", what exceeds a budget is computed again.

| |";

/// Returns the page.
pub(super) fn markdown(decodes: &[Decode], fast: &[Fast]) -> String {
    let mut text = HEAD.to_owned();
    text.push_str("\n## Predicted decodes, halves, milliseconds\n\n| |");
    let columns: Vec<(&str, u32)> = FAMILIES.iter().flat_map(|family| SIDES.map(|side| (*family, side))).collect();
    for (family, side) in &columns {
        let _ = write!(text, " {family} {side} |");
    }
    let _ = writeln!(text, "\n|---|{}", "---|".repeat(columns.len()));
    for device in &DEVICES {
        let _ = write!(text, "| {} |", device.name);
        for decode in decodes.iter().filter(|decode| decode.device.name == device.name) {
            let _ = write!(text, " {:.1} |", decode.prediction.seconds * 1e3);
        }
        text.push('\n');
    }
    traffic(&mut text, fast);
    let (family, side) = SHOWN;
    let _ = writeln!(
        text,
        "\n## Launches of {family} at {side}x{side}\n\nGB are what launches touch, each byte once a launch, and of that what no cache holds. Workgroups are those of the launch in which half of \
         the kernel's time is over, smallest first; waves are what a core has of it in all. Starved: its share of the decode in launches of fewer than two workgroups for a core."
    );
    for decode in decodes.iter().filter(|decode| (decode.family, decode.side) == SHOWN) {
        device(&mut text, decode);
    }
    text
}

/// Writes the savings of `--precision fast`.
fn traffic(text: &mut String, devices: &[Fast]) {
    let (family, side) = SHOWN;
    let _ = writeln!(
        text,
        "\n## What `--precision fast` saves: {family} at {side}x{side}, f16 and fast\n\nGB that all launches of a decode touch together, each byte once a launch, and of that what no cache \
         holds. Fast keeps transformed tiles and their products in halves, too. Devices without f16 arithmetic have no fast.\n\n| | GB | from memory | ms |\n|---|---|---|---|"
    );
    #[expect(clippy::cast_precision_loss, reason = "a table")]
    let sum = |prediction: &Prediction, bytes: fn(&Kind) -> u64| {
        prediction.kinds.values().map(bytes).sum::<u64>() as f64 / 1e9
    };
    for Fast { device, halves, fast } in devices {
        let [moved, from_memory] = [|kind: &Kind| kind.moved, |kind: &Kind| kind.from_memory]
            .map(|bytes| (sum(halves, bytes), sum(fast, bytes)));
        let _ = writeln!(
            text,
            "| {} | {:.1}, {:.1} | {:.1}, {:.1} | {:.1}, {:.1} |",
            device.name,
            moved.0,
            moved.1,
            from_memory.0,
            from_memory.1,
            halves.seconds * 1e3,
            fast.seconds * 1e3,
        );
    }
}

fn device(text: &mut String, decode: &Decode) {
    let Decode { device, prediction, .. } = decode;
    let _ = writeln!(text, "\n### {}: {} cores, {:.1} ms\n", device.name, device.cores, prediction.seconds * 1e3);
    text.push_str(
        "| kernel | launches | GB | from memory | workgroups | for a core | waves a core | ms | share | starved |\n",
    );
    text.push_str("|---|---|---|---|---|---|---|---|---|---|\n");
    let mut kinds: Vec<(&&str, &Kind)> = prediction.kinds.iter().collect();
    kinds.sort_by(|(_, a), (_, b)| b.seconds.total_cmp(&a.seconds));
    for (name, kind) in kinds {
        #[expect(clippy::cast_precision_loss, reason = "a table")]
        let [moved, from_memory, workgroups] =
            [kind.moved, kind.from_memory, kind.workgroups].map(|count| count as f64);
        let share = |seconds: f64| seconds / prediction.seconds * 100.0;
        let starved = if kind.starved > 0.0 { format!("{:.1} %", share(kind.starved)) } else { String::new() };
        let _ = writeln!(
            text,
            "| {name} | {} | {:.2} | {:.2} | {workgroups} | {:.1} | {:.0} | {:.2} | {:.1} % | {starved} |",
            kind.launches,
            moved / 1e9,
            from_memory / 1e9,
            workgroups / f64::from(device.cores),
            kind.waves,
            kind.seconds * 1e3,
            share(kind.seconds),
        );
    }
}

/// Returns the kernels that starve the device of `decode` for at least [`HOT`] of the time.
pub(super) fn starved(decode: &Decode) -> Vec<String> {
    let Decode { device, family, side, prediction } = decode;
    let line = |(name, kind): (&&str, &Kind)| {
        let share = kind.starved / prediction.seconds;
        let text = format!(
            "{}, {family} {side}x{side}: {name}: {:.1} % of {:.1} ms; {} cores",
            device.name,
            share * 100.0,
            prediction.seconds * 1e3,
            device.cores
        );
        (share >= HOT).then_some(text)
    };
    prediction.kinds.iter().filter_map(line).collect()
}
