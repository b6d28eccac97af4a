//! Holds documents and comments to the rules of style in CONTRIBUTING.md: `cargo xtask words`.

mod comments;
mod documents;
mod prose;

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Result, ensure};

use crate::command::{output, run};
use crate::python;

/// Texts that others wrote or that programs print.
const NOT_OURS: [&str; 4] = ["web/vendor/", "tests/fixtures/", "fuzz/corpus/", "benches/results/"];

/// Returns an error that lists every fault in the repository's texts, if there are any.
pub(crate) fn check() -> Result<()> {
    let (mut faults, glossary) = (Vec::new(), fs::read_to_string("docs/glossary.md")?);
    for path in output(Command::new("git").args(["ls-files"]))?.lines() {
        let is_ours = !NOT_OURS.iter().any(|folder| path.starts_with(folder));
        let Ok(text) = fs::read_to_string(path) else { continue };
        let found = match Path::new(path).extension().and_then(|ending| ending.to_str()) {
            Some("md") => documents::faults(path, &text, &glossary, is_ours),
            Some(ending) if is_ours => comments::faults(ending, &text),
            _ => Vec::new(),
        };
        faults.extend(found.into_iter().map(|fault| format!("{path}:{fault}")));
    }
    ensure!(faults.is_empty(), "{} faults of style:\n{}", faults.len(), faults.join("\n"));
    run(&mut python::tool("typos")?)
}
