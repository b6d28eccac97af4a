//! Steps of `demo` and `test`. A step prints what it runs, and fails if that fails.

use std::num::NonZero;
use std::path::Path;
use std::process::Command;
use std::thread::available_parallelism;

use anyhow::Result;

use crate::command::{beside, cargo, in_full, output, run, selected};
use crate::install::{ensure_adapter, ensure_component};
use crate::mesa::{Mesa, Suite};
use crate::paths::wgvae;
use crate::times::Times;
use crate::{browser, gpu_day, isa, python, wasm, web, words};

/// Tests of devices that also run on the system's CPU driver, if most tests run on a newer one:
/// each kernel alone, and small decodes in both precisions. All tests of the command line run
/// there, too.
const ON_ANY_DRIVER: [&str; 3] = ["kernels::", "pictures_are_within_one_level", "a_stream_beyond_half_precision"];

/// Variable with which Mesa's CPU driver skips LLVM's optimisation. That takes longer than the test
/// of a kernel runs, but a decode that was not optimised runs longer.
const UNOPTIMIZED: (&str, &str) = ("GALLIVM_PERF", "nopt");

/// Tests that run unoptimised: those of kernels, and of matrix units, whose kernels are compiled
/// for minutes where a driver imitates them.
const COMPILED_LONGEST: [&str; 2] = ["kernels::", "matrix_units"];

pub(crate) fn demo(output: &Path) -> Result<()> {
    run(cargo().args(["build", "--release", "--package", "wgvae-cli"]))?;
    let mut demo = Command::new(wgvae());
    demo.arg("demo").arg("--output").arg(output);
    match ensure_adapter(&wgvae()) {
        Ok(()) => run(demo.arg("--both")),
        Err(error) => {
            println!("{error}; decoding on the CPU");
            run(demo.args(["--device", "cpu"]))
        }
    }
}

/// Runs all checks. With `full`, sweeps take every step instead of a few.
pub(crate) fn test(full: bool) -> Result<()> {
    check_hangups()?;
    let mut times = Times::default();
    times.step("format", || {
        ensure_component("rustfmt")?;
        run(cargo().args(["fmt", "--all", "--check"]))
    })?;
    times.step("words and lints", words_and_lints)?;
    times.step("building", || run(&mut build()))?;
    ensure_adapter(&wgvae())?;
    times.step("tests without a device, command line", || {
        run(cargo().args(["test", "--release", "--package", "xtask"]))?;
        run(in_full(selected("test").args(["--bins", "--lib", "--test", "cpu"]), full))?;
        run(in_full(&mut command_line_tests(), full))?;
        run(selected("test").arg("--doc"))
    })?;
    times.step("tests on a device", || test_devices(full))?;
    times.step("a GPU's day, in short", gpu_day::test)?;
    if full {
        times.step("machine code", isa::test)?;
    }
    times.step("Python", python::test)?;
    times.step("documentation", || run(selected("doc").arg("--no-deps").env("RUSTDOCFLAGS", "-D warnings")))?;
    times.step("page and package", web::build_with_tools)?;
    times.step("browsers", || browser::test(&[], newer_driver().as_ref(), full))
}

/// Checks words beside the lints, which use one core most of the time. Lints print their faults;
/// those of words are in the error.
fn words_and_lints() -> Result<()> {
    ensure_component("clippy")?;
    beside(words::check, || {
        // With xtask itself, which writes no program here: its dependencies are checked once.
        let lints = ["clippy", "--release", "--workspace", "--all-targets"];
        run(cargo().args(lints).args(["--", "-D", "warnings"]))?;
        wasm::lint()
    })
}

/// Returns the tests of the command line, which wait for servers, and for drivers that compile on
/// one core: one more of them runs at once than there are cores.
fn command_line_tests() -> Command {
    const THREADS: &str = "RUST_TEST_THREADS";
    let mut tests = selected("test");
    tests.args(["--test", "cli"]);
    if std::env::var_os(THREADS).is_none() {
        tests.env(THREADS, (1 + available_parallelism().map_or(1, NonZero::get)).to_string());
    }
    tests
}

/// Fails if hangups are ignored, as under `nohup`: programs inherit that, and tests that hang up
/// would wait for ever.
fn check_hangups() -> Result<()> {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let ignored = ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or_default();
    // SIGHUP is signal 1, the lowest bit.
    anyhow::ensure!(ignored & 1 == 0, "the tests send SIGHUP, which this process ignores: run them without nohup");
    Ok(())
}

/// Runs the browser tests alone: all, or the named ones.
pub(crate) fn test_browser(names: &[String]) -> Result<()> {
    run(&mut build())?;
    ensure_adapter(&wgvae())?;
    web::build_with_tools()?;
    browser::test(names, newer_driver().as_ref(), true)
}

/// Tests the kernels alone: all problems, or those whose names match a regular expression.
pub(crate) fn test_kernels(problems: Option<&str>) -> Result<()> {
    run(selected("build").args(["--bins", "--test", "gpu"]))?;
    ensure_adapter(&wgvae())?;
    let mut tests = selected("test");
    tests.args(["--test", "gpu", "--", "kernels::"]);
    if let Some(problems) = problems {
        tests.env("WGVAE_PROBLEMS", problems);
    }
    if let Some(driver) = newer_driver() {
        driver.run_by(tests.env(UNOPTIMIZED.0, UNOPTIMIZED.1));
    }
    run(&mut tests)
}

/// Tests the Python package as users get it, with all optional packages; with `plain`, the module
/// that cargo has built, with numpy alone.
pub(crate) fn test_python(plain: bool) -> Result<()> {
    run(&mut build())?;
    ensure_adapter(&wgvae())?;
    if plain { python::test() } else { python::test_wheel() }
}

/// Builds everything to test. The module for Python is a library, which building programs and tests
/// does not include. The tests of browsers take the kernels' texts from an example.
fn build() -> Command {
    let mut command = selected("build");
    command.args(["--lib", "--bins", "--tests", "--example", "kernel_texts"]);
    command
}

/// Runs the tests of devices. On a GPU, all run there; on a CPU, all run on the newest driver and
/// some on the system's.
fn test_devices(full: bool) -> Result<()> {
    let tests = || {
        let mut command = selected("test");
        command.args(["--test", "gpu", "--"]);
        if full {
            // Include networks and sizes that take minutes on a CPU driver.
            command.arg("--include-ignored");
        }
        command
    };
    match newer_driver() {
        None => run(in_full(&mut tests(), full)),
        Some(driver) => {
            let mut unoptimized = tests();
            unoptimized.args(COMPILED_LONGEST).env(UNOPTIMIZED.0, UNOPTIMIZED.1);
            driver.run_by(&mut unoptimized);
            run(in_full(&mut unoptimized, full))?;
            let mut others = tests();
            others.args(COMPILED_LONGEST.iter().flat_map(|tests| ["--skip", tests]));
            driver.run_by(&mut others);
            run(in_full(&mut others, full))?;
            let mut older = tests();
            older.args(ON_ANY_DRIVER);
            if !full {
                // Each kernel once in each storage and with each set of flags.
                older.env("WGVAE_BRIEF", "1");
            }
            run(in_full(&mut older, full))
        }
    }
}

/// Returns a CPU driver that is faster than the system's. None if the tests would get a GPU, or a
/// driver that the user has chosen.
fn newer_driver() -> Option<Mesa> {
    let adapters = output(Command::new(wgvae()).arg("adapters").env("RUST_LOG", "off")).ok()?;
    let best = adapters.split("\n1:").next()?;
    if std::env::var_os("VK_DRIVER_FILES").is_some() || !best.contains("llvmpipe") {
        return None;
    }
    let newest = Mesa::newest(Suite::Testing);
    let newest = newest.inspect_err(|error| eprintln!("xtask: no newer CPU driver, the system's will do: {error:#}"));
    newest.ok().filter(|driver| {
        let starts = driver.starts(&wgvae(), "adapters");
        if !starts {
            eprintln!("xtask: no newer CPU driver, the system's will do: programs do not start with what was unpacked");
        }
        starts
    })
}
