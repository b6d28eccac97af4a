//! The loop with the most multiply-adds in a kernel's machine code, and the share of multiply-adds
//! among its instructions.

use std::collections::{BTreeMap, BTreeSet};

use crate::devices::Maker;

/// Instruction counts of one iteration of a loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct HotLoop {
    pub(crate) instructions: u32,
    /// Multiply-adds of f32 and f16 for each lane. One instruction may contain several.
    pub(crate) multiply_adds: u32,
}

impl std::fmt::Display for HotLoop {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} multiply-adds of {} instructions", self.multiply_adds, self.instructions)
    }
}

/// Meaning of a line of machine code.
#[derive(Debug, PartialEq, Eq)]
enum Line<'a> {
    /// A jump target.
    Label(&'a str),
    Instruction {
        multiply_adds: u32,
        goes_to: Option<&'a str>,
        /// True if execution may continue at the next instruction.
        goes_on: bool,
    },
    Nothing,
}

/// A basic block: instructions that follow one another.
#[derive(Debug, Default)]
struct Block<'a> {
    own: HotLoop,
    goes_to: Option<&'a str>,
    goes_on: bool,
}

/// Returns the loop of `code` with the most multiply-adds, and the innermost of several. `None` if
/// no loop multiplies, or if the driver shows no code.
pub(crate) fn hot_loop(maker: Maker, code: &str) -> Option<HotLoop> {
    let (blocks, labels) = blocks(maker, code);
    let target = |block: &Block<'_>| block.goes_to.and_then(|label| labels.get(label).copied());
    let mut before = vec![Vec::new(); blocks.len()];
    let after = |index: usize| {
        let block: &Block<'_> = &blocks[index];
        let next = (block.goes_on && index + 1 < blocks.len()).then_some(index + 1);
        next.into_iter().chain(target(block))
    };
    for index in 0..blocks.len() {
        after(index).for_each(|after| before[after].push(index));
    }
    // A jump back closes a loop.
    let back =
        blocks.iter().enumerate().filter_map(|(end, block)| Some((target(block).filter(|start| *start <= end)?, end)));
    let around = back.map(|(start, end)| sum(&blocks, &around(&before, after, start, end)));
    around
        .filter(|sum| sum.multiply_adds > 0)
        .max_by_key(|sum| (sum.multiply_adds, std::cmp::Reverse(sum.instructions)))
}

/// Splits `code` into blocks. Also returns the block of each label.
fn blocks(maker: Maker, code: &str) -> (Vec<Block<'_>>, BTreeMap<&str, usize>) {
    let mut blocks = vec![Block { goes_on: true, ..Block::default() }];
    let mut labels = BTreeMap::new();
    for line in code.lines().map(|line| read(maker, line)) {
        let last = blocks.len() - 1;
        match line {
            Line::Label(label) => {
                labels.insert(label, blocks.len());
                blocks.push(Block { goes_on: true, ..Block::default() });
            }
            Line::Instruction { multiply_adds, goes_to, goes_on } => {
                blocks[last].own.instructions += 1;
                blocks[last].own.multiply_adds += multiply_adds;
                if goes_to.is_some() || !goes_on {
                    (blocks[last].goes_to, blocks[last].goes_on) = (goes_to, goes_on);
                    blocks.push(Block { goes_on: true, ..Block::default() });
                }
            }
            Line::Nothing => {}
        }
    }
    (blocks, labels)
}

/// Returns the blocks of the loop from `start` to `end` and back: reachable from `start`, and able
/// to reach `end`. This leaves out code after the loop that a compiler placed inside it, and code
/// before a loop that is entered in its middle.
fn around<A: Iterator<Item = usize>>(
    before: &[Vec<usize>],
    after: impl Fn(usize) -> A,
    start: usize,
    end: usize,
) -> BTreeSet<usize> {
    let forwards = reached(start, &after);
    let mut found = BTreeSet::from([start]);
    let mut open = vec![end];
    while let Some(block) = open.pop() {
        if forwards.contains(&block) && found.insert(block) {
            open.extend(&before[block]);
        }
    }
    found
}

/// Returns all blocks that are reachable from `start`, including itself.
fn reached<A: Iterator<Item = usize>>(start: usize, after: impl Fn(usize) -> A) -> BTreeSet<usize> {
    let (mut found, mut open) = (BTreeSet::from([start]), vec![start]);
    while let Some(block) = open.pop() {
        open.extend(after(block).filter(|next| found.insert(*next)));
    }
    found
}

fn sum(blocks: &[Block<'_>], which: &BTreeSet<usize>) -> HotLoop {
    let own = which.iter().map(|block| blocks[*block].own);
    own.fold(HotLoop::default(), |sum, own| HotLoop {
        instructions: sum.instructions + own.instructions,
        multiply_adds: sum.multiply_adds + own.multiply_adds,
    })
}

/// Parses a line in the format of the compiler for this maker's devices.
fn read(maker: Maker, line: &str) -> Line<'_> {
    match maker {
        Maker::Amd => aco(line),
        Maker::Nvidia => nak(line),
        Maker::Intel => brw(line),
        Maker::Qualcomm => ir3(line),
        // Mesa's compiler for Apple prints no code.
        Maker::Apple => Line::Nothing,
    }
}

/// Parses AMD code: `BB3:`, `\ts_branch BB1 ; ...`,
/// `\tv_dual_fmac_f32 v1, v2, v3 :: v_dual_fmac_f32 ...`.
fn aco(line: &str) -> Line<'_> {
    if let Some(label) = line.strip_suffix(':') {
        return Line::Label(label);
    }
    let Some(text) = line.strip_prefix('\t') else { return Line::Nothing };
    let text = text.split(';').next().unwrap_or_default().trim();
    let single = text.matches("_fmac_f").count() + text.matches("_fma_f").count() + text.matches("_fma_mix").count();
    let packed = text.matches("v_pk_fma").count();
    let goes_to = text
        .split_once("branch")
        .and_then(|(_, target)| target.split_whitespace().nth(usize::from(!target.starts_with(' '))));
    let goes_on = !text.starts_with("s_branch") && !text.starts_with("s_endpgm");
    Line::Instruction { multiply_adds: count(single + packed), goes_to, goes_on }
}

/// Parses NVIDIA code: `block.u 1 L1 [0, 216] -> {`, `    bra !up0 L385  // delay=1`,
/// `r5 = ffma r1 r2 r3`.
fn nak(line: &str) -> Line<'_> {
    if line.starts_with("block") {
        return line.split_whitespace().nth(2).map_or(Line::Nothing, Line::Label);
    }
    let text = line.split("//").next().unwrap_or_default().trim();
    if text.is_empty() || text.starts_with('}') {
        return Line::Nothing;
    }
    let words = || text.split_whitespace();
    let is = |name: &str| words().any(|word| word.split('.').next() == Some(name));
    let goes_to = if is("bra") { words().last() } else { None };
    let multiply_adds = if is("ffma") { 1 } else { 2 * u32::from(is("hfma2")) };
    // A condition comes before the instruction, or as its first operand.
    let is_certain = !text.starts_with('@') && (is("exit") || text.contains(" pT ") || words().count() == 2);
    let goes_on = !is_certain || !(is("exit") || is("bra"));
    Line::Instruction { multiply_adds, goes_to, goes_on }
}

/// Parses Intel code: `L0:`, `        while (16)   L0`, `        mad (16)   r1:f ...`.
fn brw(line: &str) -> Line<'_> {
    let text = line.trim();
    if let Some(label) = text.strip_suffix(':') {
        return Line::Label(label);
    }
    // Only instructions contain a number of lanes.
    if !text.contains('(') {
        return Line::Nothing;
    }
    let words = || text.split_whitespace();
    let goes_to = if words().any(|word| word == "while") { words().last() } else { None };
    let is_float = text.contains(":f") || text.contains(":hf");
    let multiply_adds = u32::from(words().any(|word| word == "mad") && is_float);
    // All other jumps in a loop lead forward, at most to its end.
    Line::Instruction { multiply_adds, goes_to, goes_on: true }
}

/// Parses Qualcomm code: `l148:`, `jump #l148`, `(ss)br p0.w, #l843`, `(rpt2)mad.f32 r1.x, ...`.
fn ir3(line: &str) -> Line<'_> {
    let text = line.trim();
    if let Some(label) = text.strip_suffix(':').filter(|label| !label.contains(' ')) {
        return Line::Label(label);
    }
    if text.is_empty() || text.starts_with([';', '@']) {
        return Line::Nothing;
    }
    let multiplies = text.contains("mad.f32") || text.contains("mad.f16");
    let again = text.split_once("(rpt").and_then(|(_, rest)| rest.split(')').next()?.parse().ok()).unwrap_or(0);
    Line::Instruction {
        multiply_adds: if multiplies { 1 + again } else { 0 },
        goes_to: text.rsplit_once('#').map(|(_, label)| label).filter(|label| label.starts_with('l')),
        goes_on: !text.starts_with("jump") && text != "end",
    }
}

fn count(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(maker: Maker, code: &str) -> Option<(u32, u32)> {
        hot_loop(maker, code).map(|found| (found.multiply_adds, found.instructions))
    }

    #[test]
    fn of_amd() {
        let code = "BB0:\n\ts_load_b64 s[0:1], s[2:3], null ; f4\nBB1:\n\ts_cbranch_scc1 BB2 ; bf\n\tv_fmac_f32_e32 v1, v2, v3 ; 56\n\
                    \tv_dual_fmac_f32 v1, v2, v3 :: v_dual_fmac_f32 v4, v5, v6 ; c8\n\ts_branch BB1 ; bf\nBB2:\n\tv_fma_f32 v1, v2, v3, v4 ; d6\n\ts_endpgm";
        assert_eq!(found(Maker::Amd, code), Some((3, 4)));
    }

    #[test]
    fn of_nvidia() {
        let code = "block.u 0 L2 [] -> {\n    r1 = mov rZ // delay=5\n} -> [1]\nblock.u 1 L1 [0, 2] -> {\n    bra !up0 L9 // delay=1\n    r5 = ffma.ftz r1 r2 r5 // delay=4\n\
                    \x20   r6 = imad r1 r2 r5\n    bra L1 // delay=5\n} -> [1, 2]\nblock 2 L9 [1] -> {\n    exit\n}";
        assert_eq!(found(Maker::Nvidia, code), Some((1, 4)));
    }

    #[test]
    fn of_intel() {
        let code = "        mov (16) r1:f r2:f\n\nL0:\n(f0.0)  break (16) jip:L13 uip:L13\n        mad (16) r1:f r2:f r3:f r4<1>:f {F@1}\n        mad (16) r1:d r2:d r3:d r4:d\n\nL13:\n        while (16)  L0\n        mad (16) r1:f r2:f r3:f r4:f";
        assert_eq!(found(Maker::Intel, code), Some((1, 4)));
    }

    #[test]
    fn of_qualcomm() {
        let code = "; offsets:\n@const(c9.x) 0x1\nmov.u32u32 r0.x, 0\nl148:\n(ss)br p0.w, #l843\n(rpt2)mad.f32 r1.x, r2.x, r3.x, r1.x\nmadsh.m16 r1.x, c1.x, r2.x, r3.x\njump #l148\nl843:\nend";
        assert_eq!(found(Maker::Qualcomm, code), Some((3, 4)));
    }

    #[test]
    fn what_follows_a_loop_is_not_counted() {
        // The exit of the loop leads into its middle.
        let code = "block 0 L0 [] -> {\n    bra L1\n}\nblock 1 L1 [0] -> {\n@!p0 bra pT L3 // delay=1\n}\nblock 2 L2 [1] -> {\n    st r1\n    exit\n}\n\
                    block 3 L3 [1] -> {\n    r5 = ffma r1 r2 r5\n    bra pT L1\n}";
        assert_eq!(found(Maker::Nvidia, code), Some((1, 3)));
    }

    #[test]
    fn what_leads_into_the_middle_of_a_loop_is_not_counted() {
        let code = "BB0:\n\tv_mov_b32 v1, v2\n\ts_branch BB2\nBB1:\n\tv_mov_b32 v1, v2\nBB2:\n\tv_fmac_f32_e32 v1, v2, v3\n\ts_cbranch_scc1 BB1\n\ts_endpgm";
        assert_eq!(found(Maker::Amd, code), Some((1, 3)));
    }

    #[test]
    fn of_a_loop_within_a_loop() {
        let code = "L0:\n mov (16) r1 r2\nL1:\n mad (16) r1:f r2:f r3:f r4:f\n while (16) L1\n while (16) L0";
        assert_eq!(found(Maker::Intel, code), Some((1, 2)));
        assert_eq!(found(Maker::Intel, "mad (16) r1:f r2:f r3:f r4:f"), None);
    }
}
