//! A few figures out of all that a driver reports, the same for every device.

use serde::{Deserialize, Serialize};

use crate::devices::Maker;
use crate::driver::Compiled;
use crate::hot_loop::{HotLoop, hot_loop};

/// Figures of one kernel's machine code on one device. More occupancy is better; for all others,
/// less is better.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "[u32; 8]", into = "[u32; 8]")]
pub(crate) struct Figures {
    /// Vector registers of an invocation, in the device's own unit.
    pub(crate) registers: u32,
    /// Amount of work that runs at once, in the device's own unit: see [`units`].
    pub(crate) occupancy: u32,
    /// Number of instructions that spill registers to memory, not bytes.
    pub(crate) spills: u32,
    /// Bytes of memory of an invocation, for spills and for arrays with indices that are not
    /// constant. Adreno's driver does not report it.
    pub(crate) scratch: u32,
    /// Number of instructions, with loops counted once.
    pub(crate) instructions: u32,
    /// Processor time of the compilation.
    pub(crate) milliseconds: u32,
    /// The loop with the most multiply-adds. Zeros if there is none, or if the driver does not show
    /// it.
    pub(crate) hot_loop: HotLoop,
}

/// Names of the figures, in the order of the file.
pub(crate) const COLUMNS: [&str; 8] = [
    "registers",
    "occupancy",
    "spills",
    "scratch bytes",
    "instructions",
    "compiled in ms",
    "multiply-adds of the hot loop",
    "instructions of the hot loop",
];

impl From<[u32; 8]> for Figures {
    fn from(figures: [u32; 8]) -> Self {
        let [registers, occupancy, spills, scratch, instructions, milliseconds, multiply_adds, around] = figures;
        let hot_loop = HotLoop { instructions: around, multiply_adds };
        Self { registers, occupancy, spills, scratch, instructions, milliseconds, hot_loop }
    }
}

impl From<Figures> for [u32; 8] {
    fn from(figures: Figures) -> Self {
        let Figures { registers, occupancy, spills, scratch, instructions, milliseconds, hot_loop } = figures;
        let HotLoop { instructions: around, multiply_adds } = hot_loop;
        [registers, occupancy, spills, scratch, instructions, milliseconds, multiply_adds, around]
    }
}

impl Figures {
    /// Reads the figures, by the names that this maker's driver uses.
    pub(crate) fn new(maker: Maker, compiled: &Compiled) -> Self {
        let read = |name: &str| whole(compiled.statistics.get(name).copied().unwrap_or_default());
        let [registers, occupancy, spills, scratch, instructions] = names(maker).map(read);
        Self {
            registers,
            occupancy: if maker == Maker::Intel { compiled.subgroup } else { occupancy },
            spills,
            scratch,
            instructions,
            milliseconds: whole(compiled.milliseconds),
            hot_loop: hot_loop(maker, &compiled.code).unwrap_or_default(),
        }
    }
}

/// Returns the names of the statistics for registers, occupancy, spills, scratch and instructions.
/// AMD's scalar registers spill into vector registers, not into memory, so their spills do not
/// count.
fn names(maker: Maker) -> [&'static str; 5] {
    match maker {
        Maker::Amd => ["VGPRs", "Subgroups per SIMD", "Spilled VGPRs", "Scratch size", "Instructions"],
        Maker::Nvidia => ["Number of GPRs", "Max warps/SM", "Spills to memory", "SLM size", "Instruction count"],
        Maker::Intel => ["Max live registers", "", "Spills", "Scratch Memory Size", "Instructions"],
        Maker::Qualcomm => ["Registers used", "Max Waves Per Core", "STP Count", "", "Instruction Count"],
        Maker::Apple => ["GPRs", "Threads", "Spills", "Scratch", "Instructions"],
    }
}

/// Returns the units of `registers` and `occupancy` on devices of this maker.
pub(crate) fn units(maker: Maker) -> &'static str {
    match maker {
        Maker::Amd => "registers: VGPRs; occupancy: subgroups a SIMD as the driver counts them, at most 32",
        Maker::Nvidia => "registers: GPRs; occupancy: warps an SM, at most 48",
        Maker::Intel => "registers: of 32 bytes, alive at once; occupancy: lanes of a subgroup, at most 32",
        Maker::Qualcomm => "registers: of four f32; occupancy: waves a core, at most 16; scratch is not told",
        Maker::Apple => "registers: of 16 bits, at most 256; occupancy: invocations a core, at most 1024",
    }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "counts are small, and never negative")]
fn whole(number: f64) -> u32 {
    number.round().max(0.0) as u32
}
