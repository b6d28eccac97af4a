//! Program that makes the JavaScript half of a wasm module (`NAME.js`, a function that makes
//! instances) and checks both halves against the size budget.
//!
//! `cargo xtask web` calls it as `xtask-bindgen bind FOLDER NAME MODULE.wasm`, minifies the glue,
//! and calls `xtask-bindgen measure FOLDER NAME BUDGET`, the budget in bytes of both halves after
//! gzip -9.

mod fusing;
mod imports;
mod instances;
mod order;

use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context as _, Result, bail, ensure};
use flate2::Compression;
use flate2::write::GzEncoder;
use wasm_bindgen_cli_support::Bindgen;

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match *words.as_slice() {
        ["bind", folder, name, module] => bind(Path::new(module), Path::new(folder), name),
        ["measure", folder, name, budget] => {
            let budget = budget.parse().with_context(|| format!("expected a number of bytes, found {budget}"))?;
            measure(Path::new(folder), name, budget)
        }
        _ => bail!("expected bind FOLDER NAME MODULE.wasm, or measure FOLDER NAME BUDGET, found {words:?}"),
    }
}

/// Fails if both halves of the module `name` take more than `budget` bytes.
fn measure(folder: &Path, name: &str, budget: usize) -> Result<()> {
    let mut total = 0;
    for name in [format!("{name}_bg.wasm"), format!("{name}.js")] {
        let content = fs::read(folder.join(&name)).with_context(|| format!("could not read {name}"))?;
        let packed = gzip(&content)?;
        eprintln!("xtask: {name}: {} bytes, {packed} as gzip", content.len());
        total += packed;
    }
    eprintln!("xtask: wasm and glue: {total} bytes as gzip, at most {budget}");
    ensure!(total <= budget, "wasm and glue take {total} bytes as gzip, at most {budget}");
    Ok(())
}

/// Writes `NAME_bg.wasm`, `NAME.js` and `NAME.d.ts` of `module` into `folder`.
fn bind(module: &Path, folder: &Path, name: &str) -> Result<()> {
    let mut bindgen = Bindgen::new();
    bindgen.input_path(module).out_name(name).typescript(true).remove_name_section(true).remove_producers_section(true);
    bindgen.web(true)?;
    bindgen.generate(folder).with_context(|| format!("wasm-bindgen refused {}", module.display()))?;
    let [script, types] = ["js", "d.ts"].map(|end| folder.join(format!("{name}.{end}")));
    let made = instances::make(&read(&script)?, &read(&types)?, name)?;
    let wasm = folder.join(format!("{name}_bg.wasm"));
    let content = fs::read(&wasm).with_context(|| format!("could not read {}", wasm.display()))?;
    let (content, text) = imports::shorten(&content, &made.script)?;
    let split = fusing::split(&content)?;
    let arranged = smallest(&split)?;
    let [before, after] = [&split, &arranged].map(|module| fusing::places(module).count());
    ensure!(before == after, "expected {before} multiply-adds in the new order, found {after}");
    fs::write(&wasm, arranged)?;
    fs::write(&script, text)?;
    fs::write(&types, made.types)?;
    Ok(())
}

/// Returns `module` with its functions in the order that gzip compresses best, of those tried.
fn smallest(module: &[u8]) -> Result<Vec<u8>> {
    let arranged = order::arrange(module)?;
    let sizes = arranged.iter().map(|module| gzip(module)).collect::<Result<Vec<_>>>()?;
    let best = sizes.into_iter().zip(arranged).min_by_key(|(size, _)| *size);
    Ok(best.map(|(_, arranged)| arranged).unwrap_or_default())
}

fn read(file: &Path) -> Result<String> {
    fs::read_to_string(file).with_context(|| format!("could not read {}", file.display()))
}

/// Returns the length of `content` after gzip -9, in bytes.
fn gzip(content: &[u8]) -> Result<usize> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(content)?;
    Ok(encoder.finish()?.len())
}
