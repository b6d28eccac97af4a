//! Turns a shader file and a [`Variant`] into the final WGSL text. No other code touches shader
//! text.
//!
//! Four operations, in this order:
//!
//! 1. Append the parts that the file names (`//#parts a b`). A part with a `_packed` twin is
//!    replaced by the twin, and the part `packed` added, if its alias is `vec2<u32>`, or `u32` for
//!    pairs.
//! 2. Replace the right-hand side of each named module-scope `const` or `alias`.
//! 3. Write out the loops marked `//#unroll`.
//! 4. Enable the extensions that the text uses: `f16` if an alias has halves and, in browsers,
//!    `subgroups` if quads swap.
//!
//! There is no preprocessor and no other directive.

use std::fmt::Write as _;
use std::hash::{Hash as _, Hasher as _};

use super::embedded::PARTS;
use super::{INTERFACES, interface};

/// Parts that convert elements, each with the alias that it converts and the alias's type for
/// packed halves.
const CONVERTING_PARTS: &[(&str, &str, &str)] =
    &[("storage", "Stored", "vec2<u32>"), ("output", "Output", "vec2<u32>"), ("storage_pair", "Pair", "u32")];

/// Types that need `enable f16`.
const HALVES: [Value; 3] = [Value::Type("vec4<f16>"), Value::Type("vec2<f16>"), Value::Type("f16")];

/// A value for a `const` or `alias` of a shader file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Value {
    /// Value of a `const NAME: bool`.
    Bool(bool),
    /// Value of a `const NAME: u32`.
    U32(u32),
    /// Value of an `alias NAME`.
    Type(&'static str),
}

/// One specialisation of a shader file: every value that changes its code. Image sizes never do.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Variant {
    /// Stem of the file in `shaders/`.
    pub file: &'static str,
    /// New right-hand sides, by name.
    pub values: Vec<(&'static str, Value)>,
}

impl Variant {
    /// Returns the value set for `name`, if any.
    pub fn value(&self, name: &str) -> Option<Value> {
        self.values.iter().find(|(set, _)| *set == name).map(|(_, value)| *value)
    }

    /// True if the boolean constant `name` is set to true. The Rust half of a kernel sets every
    /// flag that the kernel has.
    pub fn flag(&self, name: &str) -> bool {
        self.value(name) == Some(Value::Bool(true))
    }

    /// True if the type `name` holds f32.
    ///
    /// # Panics
    /// If the variant sets no such type, which is a bug: all stored types are set.
    pub fn holds_f32(&self, name: &str) -> bool {
        match self.value(name) {
            Some(Value::Type(text)) => text.ends_with("<f32>"),
            Some(Value::Bool(_) | Value::U32(_)) | None => panic!("{} sets no type {name}", self.file),
        }
    }

    /// Returns the value of the integer constant `name`, or 0 if it is not set.
    pub fn number(&self, name: &str) -> u32 {
        match self.value(name) {
            Some(Value::U32(number)) => number,
            Some(Value::Bool(_) | Value::Type(_)) | None => 0,
        }
    }
}

/// Returns a number that changes with the text of any kernel.
pub fn fingerprint() -> u64 {
    let mut hasher = rustc_hash::FxHasher::default();
    INTERFACES.iter().map(|kernel| kernel.text).for_each(|text| text.hash(&mut hasher));
    PARTS.hash(&mut hasher);
    hasher.finish()
}

/// Returns the final WGSL text of `variant`.
///
/// # Errors
/// A message that names the file and the constant, part or loop that does not fit. Tests specialise
/// every variant that the kernels can ask for, so an error here is a bug of this crate.
pub fn specialize(variant: &Variant) -> Result<String, String> {
    let mut text = interface(variant.file).text.to_owned();
    for part in parts_of(&text, variant) {
        let found = PARTS.iter().find(|(name, _)| *name == part);
        let (_, code) = found.ok_or_else(|| format!("there is no shaders/parts/{part}.wgsl"))?;
        text.push('\n');
        text.push_str(code);
    }
    for (name, value) in &variant.values {
        text = replace_value(&text, name, *value)
            .map_err(|problem| format!("shaders/{}.wgsl: {problem}", variant.file))?;
    }
    text = unroll(&text).map_err(|problem| format!("shaders/{}.wgsl: {problem}", variant.file))?;
    if variant.values.iter().any(|(_, value)| HALVES.contains(value)) {
        text.insert_str(0, "enable f16;\n");
    }
    Ok(if cfg!(target_arch = "wasm32") { for_browsers(text) } else { text })
}

/// Returns the text of a kernel with the directive that only browsers want. Natively, naga goes by
/// the features that the device was opened with, and does not know the directive.
pub fn for_browsers(text: String) -> String {
    if text.contains("quadSwap") { format!("enable subgroups;\n{text}") } else { text }
}

/// Returns the parts that a kernel with this `text` needs.
fn parts_of(text: &str, variant: &Variant) -> Vec<String> {
    let named = text.lines().filter_map(|line| line.strip_prefix("//#parts ")).flat_map(str::split_whitespace);
    let is_packed = |part: &str| {
        let packed = |(name, alias, ty): &(&str, &str, &'static str)| {
            *name == part && variant.value(alias) == Some(Value::Type(ty))
        };
        CONVERTING_PARTS.iter().any(packed)
    };
    let mut parts: Vec<String> =
        named.map(|part| if is_packed(part) { format!("{part}_packed") } else { part.to_owned() }).collect();
    if parts.iter().any(|part| part.ends_with("_packed")) {
        parts.push("packed".to_owned());
    }
    parts
}

/// Replaces the right-hand side of the one module-scope line that declares `name`. Keeps the line's
/// trailing comment.
fn replace_value(text: &str, name: &str, value: Value) -> Result<String, String> {
    let (head, new) = match value {
        Value::Bool(value) => (format!("const {name}: bool = "), value.to_string()),
        Value::U32(value) => (format!("const {name}: u32 = "), format!("{value}u")),
        Value::Type(value) => (format!("alias {name} = "), value.to_owned()),
    };
    let mut found = 0;
    let mut result = String::with_capacity(text.len() + 16);
    for line in text.lines() {
        match line.strip_prefix(&head).and_then(|rest| rest.split_once(';')) {
            Some((_, comment)) => {
                found += 1;
                let _ = writeln!(result, "{head}{new};{comment}");
            }
            None => {
                let _ = writeln!(result, "{line}");
            }
        }
    }
    match found {
        1 => Ok(result),
        0 => Err(format!("no line starts with \"{head}\"")),
        _ => Err(format!("{found} lines start with \"{head}\"")),
    }
}

/// A parsed loop head: `for (var i = 0u; i < N; i++) { //#unroll`, or with `i += 4u`.
struct Loop<'a> {
    variable: &'a str,
    start: i64,
    end: i64,
    step: usize,
    suffix: &'static str,
}

/// Writes out every marked loop, inner loops included. Each turn becomes a block of its own.
fn unroll(text: &str) -> Result<String, String> {
    let lines: Vec<&str> = text.lines().collect();
    let mut result = String::with_capacity(text.len() * 4);
    unroll_lines(text, &lines, &mut result)?;
    Ok(result)
}

fn unroll_lines(text: &str, lines: &[&str], result: &mut String) -> Result<(), String> {
    let mut at = 0;
    while at < lines.len() {
        let line = lines[at];
        if !line.ends_with("//#unroll") {
            result.push_str(line);
            result.push('\n');
            at += 1;
            continue;
        }
        let head = parse_loop(text, line)?;
        let length =
            block_length(&lines[at..]).ok_or_else(|| format!("the loop \"{}\" is never closed", line.trim()))?;
        let body = lines[at + 1..at + length - 1].join("\n");
        for turn in (head.start..head.end).step_by(head.step) {
            let turn = replace_word(&body, head.variable, &format!("{turn}{}", head.suffix));
            let turn_lines: Vec<&str> = turn.lines().collect();
            result.push_str("{\n");
            unroll_lines(text, &turn_lines, result)?;
            result.push_str("}\n");
        }
        at += length;
    }
    Ok(())
}

fn parse_loop<'a>(text: &str, line: &'a str) -> Result<Loop<'a>, String> {
    let malformed =
        || format!("\"{}\" is not of the form `for (var i = 0u; i < N; i++) {{ //#unroll` (or `i += 4u`)", line.trim());
    let head = line
        .trim()
        .strip_prefix("for (var ")
        .and_then(|rest| rest.strip_suffix(") { //#unroll"))
        .ok_or_else(malformed)?;
    let (first, rest) = head.split_once("; ").ok_or_else(malformed)?;
    let (condition, increment) = rest.split_once("; ").ok_or_else(malformed)?;
    let (variable, start) = first.split_once(" = ").ok_or_else(malformed)?;
    let bound = condition.strip_prefix(variable).and_then(|rest| rest.strip_prefix(" < ")).ok_or_else(malformed)?;
    let step = match increment.strip_prefix(variable) {
        Some("++") => Some(1),
        Some(added) => added.strip_prefix(" += ").and_then(number).and_then(|step| usize::try_from(step).ok()),
        None => None,
    };
    let step = step.filter(|step| *step > 0).ok_or_else(malformed)?;
    let suffix = if start.ends_with('u') { "u" } else { "" };
    let start = number(start).ok_or_else(malformed)?;
    let end = number(bound)
        .or_else(|| constant(text, bound))
        .ok_or_else(|| format!("the bound \"{bound}\" is not a u32 constant"))?;
    Ok(Loop { variable, start, end, step, suffix })
}

fn number(text: &str) -> Option<i64> {
    text.strip_suffix('u').unwrap_or(text).parse().ok()
}

fn constant(text: &str, name: &str) -> Option<i64> {
    let head = format!("const {name}: u32 = ");
    text.lines()
        .find_map(|line| line.strip_prefix(&head))
        .and_then(|rest| rest.split_once(';'))
        .and_then(|(value, _)| number(value))
}

/// Returns the number of lines from the loop's head to its closing brace, both included. Returns
/// `None` if the brace is missing.
fn block_length(lines: &[&str]) -> Option<usize> {
    let mut depth = 0_i64;
    for (index, line) in lines.iter().enumerate() {
        let code = line.split("//").next().unwrap_or(line);
        for letter in code.chars() {
            depth += match letter {
                '{' => 1,
                '}' => -1,
                _ => 0,
            };
        }
        if depth == 0 {
            return Some(index + 1);
        }
    }
    None
}

fn replace_word(text: &str, word: &str, new: &str) -> String {
    let mut result = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find(|letter: char| letter.is_ascii_alphabetic() || letter == '_') {
        let (before, from) = rest.split_at(start);
        let end = from.find(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_').unwrap_or(from.len());
        let (name, after) = from.split_at(end);
        result.push_str(before);
        let is_member = before.ends_with('.');
        result.push_str(if name == word && !is_member { new } else { name });
        rest = after;
    }
    result.push_str(rest);
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_name_is_an_error() {
        let variant = Variant { file: "matmul", values: vec![("TILE_Q", Value::U32(1))] };
        let problem = specialize(&variant).expect_err("there is no TILE_Q");
        assert!(problem.contains("TILE_Q") && problem.contains("matmul"), "{problem}");
    }

    #[test]
    fn a_doubled_name_is_an_error() {
        let text = "const A: u32 = 1u;\nconst A: u32 = 2u;\n";
        assert!(replace_value(text, "A", Value::U32(3)).expect_err("twice").contains("2 lines"));
    }

    #[test]
    fn nested_loops_are_written_out() {
        let text = "const N: u32 = 2u;\nfor (var i = 0u; i < N; i++) { //#unroll\nfor (var j = 0u; j < 2u; j++) { //#unroll\nx[i * 2u + j] = v.i;\n}\n}\n";
        let out = unroll(text).expect("well formed");
        assert!(out.contains("x[1u * 2u + 0u] = v.i;"), "{out}");
        assert!(!out.contains("for"), "{out}");
    }

    #[test]
    fn a_loop_with_a_step_is_written_out() {
        let out = unroll("for (var i = 0u; i < 8u; i += 4u) { //#unroll\nx[i];\n}\n").expect("well formed");
        assert_eq!(out, "{\nx[0u];\n}\n{\nx[4u];\n}\n");
    }

    #[test]
    fn a_malformed_loop_is_an_error() {
        assert!(unroll("for (var i = 0u; i <= 2u; i++) { //#unroll\n}\n").is_err());
        assert!(unroll("for (var i = 0u; i < 2u; i++) { //#unroll\n").is_err());
        assert!(unroll("for (var i = 0u; i < 2u; j++) { //#unroll\n}\n").is_err());
        assert!(unroll("for (var i = 0u; i < 2u; i += 0u) { //#unroll\n}\n").is_err());
        assert!(unroll("for (var i = 0u; i < N; i++) { //#unroll\n}\n").is_err());
    }
}
