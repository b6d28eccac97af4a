//! Compilation of the crate to wasm, with rustup's target if available, otherwise with Debian's
//! source of the standard library.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::command::{cargo, output, run, succeeds};
use crate::install::{apt_install, has_apt};
use crate::paths::target;

const TARGET: &str = "wasm32-unknown-unknown";

/// Size limit of inlined functions. Measured with the profile's `opt-level` of `z`, as gzip and the
/// time of a plan with a budget: 5 (the default of `z`) 429 KB and 280 ms, 25 439 KB and 205 ms, 60
/// 463 KB and 190 ms; `s` 468 KB and 170 ms. Since then
/// `xtask-bindgen` arranges functions, for 16 KB less, and esbuild minifies the glue, for 2 KB
/// less. Now 470 KB: 20 would take 1 KB more, and 10 would take 2 KB less, but 1.4 times as long
/// for a plan.
const INLINING: &str = "llvm-args=-inline-threshold=15";

/// Limits on copies of code in the module for the CPU, at the highest level of optimisation: only
/// small functions are inlined, and only loops of a constant length unrolled. Measured as gzip and
/// the time of the demo's decode in Node. Inlined up to 60: 449 KB; up to 10: 437 KB; with less
/// unrolled: 428 KB; with marked functions (`inline`) and those in loops inlined up to 60, not 325
/// and 525: 410 KB; each 2.5 s. With marked ones up to 10 it takes 14 s, as kernels call them. The
/// level `s` takes 395 KB and 14 s. Since then, marked ones up to 50 and loops unrolled up to 200
/// take 2 KB less at the same speed; loops up to 160, or level 2, take 8 % longer. Kernels state
/// their vectors, so loops that the compiler makes vectors of are 10 KB for nothing: the demo takes
/// 2.1 s with and without.
const COPIES_OF_CORES: &str = "llvm-args=-inline-threshold=10 -inlinehint-threshold=50 -locally-hot-callsite-threshold=50 \
     -unroll-threshold=200 -unroll-runtime=0 -unroll-allow-partial=0 -unroll-allow-peeling=0";

/// Arguments with which everything in a module with threads is compiled, the standard library too:
/// its instances share one memory of at most 4 GiB, which JavaScript makes.
const SHARED: &str = "-Ctarget-feature=+atomics,+bulk-memory,+mutable-globals,+simd128 -Clink-arg=--shared-memory \
    -Clink-arg=--import-memory -Clink-arg=--max-memory=4294967296 -Clink-arg=--export=__wasm_init_tls \
    -Clink-arg=--export=__tls_size -Clink-arg=--export=__tls_align -Clink-arg=--export=__tls_base";

/// Debian's packages of the compiler and of its standard library's source, which must have the same
/// version.
const DEBIAN: [&str; 2] = ["rustc-web", "rust-web-src"];

/// A module for browsers.
#[derive(Clone, Copy)]
pub(crate) enum Module {
    /// Computes with WebGPU. Size matters most.
    Gpu,
    /// Computes on the CPU with one thread. The kernels' speed matters most.
    Cores,
    /// Computes on the CPU with several threads.
    Threads,
}

impl Module {
    /// All modules, the one that is compiled longest first.
    pub(crate) const ALL: [Self; 3] = [Self::Threads, Self::Cores, Self::Gpu];

    /// Returns cargo's profile, which is also the folder of what it builds.
    fn profile(self) -> &'static str {
        match self {
            Self::Gpu => "web",
            Self::Cores => "web-cores",
            Self::Threads => "web-threads",
        }
    }

    /// Returns the crate's features, for cargo.
    fn features(self) -> &'static str {
        match self {
            Self::Gpu => "",
            Self::Cores => "cores",
            Self::Threads => "threads",
        }
    }

    /// Returns the compiler's arguments. On the CPU every function may use vectors of 128 bits.
    fn flags(self) -> &'static [&'static str] {
        match self {
            Self::Gpu => &["-C", INLINING],
            Self::Cores | Self::Threads => {
                &["-C", "target-feature=+simd128", "-C", COPIES_OF_CORES, "-C", "no-vectorize-loops"]
            }
        }
    }

    /// Returns the most bytes that a browser fetches before it can decode: wasm and glue, each
    /// compressed with gzip -9.
    pub(crate) fn budget(self) -> usize {
        match self {
            Self::Gpu => 470_500,
            Self::Cores => 440_600,
            Self::Threads => 460_500,
        }
    }

    /// Returns the path to which [`compiler`]'s command writes the module.
    pub(crate) fn path(self) -> PathBuf {
        target().join(TARGET).join(self.profile()).join("wgvae.wasm")
    }

    /// Returns the name of the module's files.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Gpu => "wgvae",
            Self::Cores => "wgvae_cpu",
            Self::Threads => "wgvae_cpu_threads",
        }
    }
}

/// Returns the command that builds a module for the browser. Installs what it needs.
pub(crate) fn compiler(module: Module) -> Result<Command> {
    let mut cargo = cargo();
    cargo.args(["rustc", "--lib", "--target", TARGET, "--crate-type", "cdylib"]);
    cargo.args(["--profile", module.profile(), "--features", module.features()]);
    match module {
        Module::Threads => {
            // This variable takes precedence over the others with flags.
            cargo.env("CARGO_ENCODED_RUSTFLAGS", SHARED.replace(' ', "\x1f"));
            with_library(&mut cargo)?;
        }
        Module::Gpu | Module::Cores if has_target() => {}
        Module::Gpu | Module::Cores => use_debian(&mut cargo)?,
    }
    cargo.args(["--", "-D", "warnings"]).args(module.flags());
    Ok(cargo)
}

/// Lints the crate as it is compiled for the browser. Debian has no clippy of its compiler's
/// version, so there a build with denied warnings replaces it.
pub(crate) fn lint() -> Result<()> {
    if !has_target() {
        eprintln!(
            "xtask: no clippy for {TARGET}: rustup cannot install the target, and Debian's compiler comes without clippy"
        );
        return Ok(());
    }
    for module in Module::ALL {
        // In the profile of the tests: macros and build scripts are compiled for it already.
        let mut clippy = cargo();
        clippy.args(["clippy", "--release", "--lib", "--target", TARGET, "--features", module.features()]);
        run(clippy.args(["--", "-D", "warnings"]))?;
    }
    Ok(())
}

/// Returns true if rustup has the target, or can install it now.
fn has_target() -> bool {
    let installed = output(Command::new("rustup").args(["target", "list", "--installed"]));
    if installed.is_ok_and(|targets| targets.lines().any(|line| line == TARGET)) {
        return true;
    }
    eprintln!("xtask: the target {TARGET} is missing; installing it with rustup");
    succeeds(Command::new("rustup").args(["target", "add", TARGET]))
}

/// Makes `cargo` compile the standard library itself, from the source that rustup has or can
/// install now, otherwise from Debian's.
fn with_library(cargo: &mut Command) -> Result<()> {
    if !succeeds(Command::new("rustup").args(["component", "add", "rust-src"])) {
        return use_debian(cargo);
    }
    build_library(cargo);
    Ok(())
}

/// Adds the arguments for compiling the standard library, which cargo does not have in stable
/// versions yet.
fn build_library(cargo: &mut Command) {
    cargo.args(["-Z", "build-std=std,panic_abort"]).env("RUSTC_BOOTSTRAP", "1");
}

/// Makes `cargo` compile the standard library itself, from Debian's source with Debian's compiler,
/// and link with rustup's linker.
fn use_debian(cargo: &mut Command) -> Result<()> {
    eprintln!("xtask: rustup cannot install what {TARGET} needs; using Debian's {} and {}", DEBIAN[0], DEBIAN[1]);
    ensure_debian()?;
    let sysroot = PathBuf::from(output(Command::new("rustc").args(["--print", "sysroot"]))?);
    let host = output(Command::new("rustc").args(["--print", "host-tuple"]))?;
    let linker = sysroot.join("lib/rustlib").join(host).join("bin/rust-lld");
    ensure!(linker.is_file(), "expected rustup's linker at {}", linker.display());
    build_library(cargo);
    cargo.env("RUSTC", "/usr/bin/rustc").env("CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_LINKER", linker);
    Ok(())
}

fn ensure_debian() -> Result<()> {
    let version = |package| output(Command::new("dpkg-query").args(["-W", "-f", "${Version}", package])).ok();
    let same = || version(DEBIAN[0]).filter(|_| version(DEBIAN[0]) == version(DEBIAN[1]));
    if same().is_some() {
        return Ok(());
    }
    ensure!(
        has_apt(),
        "rustup cannot install what {TARGET} needs: run `rustup target add {TARGET}` and `rustup component add rust-src`"
    );
    apt_install(&format!("Rust's standard library for {TARGET} is missing"), &DEBIAN)?;
    same()
        .map(|_| ())
        .with_context(|| format!("{} and {} differ in version after installing both", DEBIAN[0], DEBIAN[1]))
}
