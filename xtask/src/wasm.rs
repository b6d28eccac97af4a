//! Compilation of the crate to wasm, with a standard library that is compiled for it: from rustup's
//! source if available, otherwise from Debian's.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::command::{beside, cargo, output, run, succeeds};
use crate::install::{apt_install, has_apt};
use crate::paths::target;

const TARGET: &str = "wasm32-unknown-unknown";

/// Size limit of inlined functions. Measured with the profile's `opt-level` of `z`, as gzip and the
/// time of a plan with a budget: 5 (the default of `z`) 429 KB and 280 ms, 25 439 KB and 205 ms, 60
/// 463 KB and 190 ms; `s` 468 KB and 170 ms. Since then
/// `xtask-bindgen` arranges functions, for 16 KB less, and esbuild minifies the glue, for 2 KB
/// less, and the standard library is compiled for size, for 10 KB less. Now 20 takes 464 KB; 15
/// would take 3 KB less, but 7 % longer for a plan; 25 would take 4 KB more and 3 % less time.
const INLINING: &str = "llvm-args=-inline-threshold=20";

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
    pub(crate) const ALL: [Self; 3] = [Self::Threads, Self::Cores, Self::Gpu];

    /// Returns cargo's profile, which is also the folder of what it builds.
    fn profile(self) -> &'static str {
        match self {
            Self::Gpu | Self::Cores => "web",
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

    /// Returns the compiler's arguments. On the CPU every function may use vectors of 128 bits, and
    /// only the crate itself has kernels, so the others stay as small as the profile makes them.
    fn flags(self) -> &'static [&'static str] {
        match self {
            Self::Gpu => &["-C", INLINING],
            Self::Cores | Self::Threads => {
                &["-Copt-level=3", "-Ctarget-feature=+simd128", "-C", COPIES_OF_CORES, "-Cno-vectorize-loops"]
            }
        }
    }

    /// Returns the most bytes that a browser fetches before it can decode: wasm and glue, each
    /// compressed with gzip -9.
    pub(crate) fn budget(self) -> usize {
        match self {
            Self::Gpu => 465_000,
            Self::Cores => 433_000,
            Self::Threads => 459_000,
        }
    }

    /// Returns the path to which [`compile`] writes the module.
    pub(crate) fn path(self) -> PathBuf {
        target().join(TARGET).join(self.name()).with_extension("wasm")
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

/// Compiles all modules. The two without threads have the same dependencies, so they are compiled
/// in turn in one folder. The one with threads is compiled beside them, because each uses one core
/// most of the time.
pub(crate) fn compile() -> Result<()> {
    let library = Library::find()?;
    let in_turn = || [Module::Cores, Module::Gpu].into_iter().try_for_each(|module| compile_one(module, &library));
    beside(|| compile_one(Module::Threads, &library), in_turn)
}

fn compile_one(module: Module, library: &Library) -> Result<()> {
    let mut cargo = cargo();
    cargo.args(["rustc", "--lib", "--target", TARGET, "--crate-type", "cdylib"]);
    cargo.args(["--profile", module.profile(), "--features", module.features()]);
    // Cargo keeps libraries of one name apart by their features only if this is set. Otherwise each
    // of two modules would be compiled again after the other.
    cargo.env("__CARGO_DEFAULT_LIB_METADATA", "web");
    if let Module::Threads = module {
        // This variable takes precedence over the others with flags.
        cargo.env("CARGO_ENCODED_RUSTFLAGS", SHARED.replace(' ', "\x1f"));
    }
    library.add_to(&mut cargo);
    run(cargo.args(["--", "-D", "warnings"]).args(module.flags()))?;
    // Modules of one profile overwrite each other's file, so each is copied.
    let written = target().join(TARGET).join(module.profile()).join("wgvae.wasm");
    fs::copy(&written, module.path()).with_context(|| format!("{} could not be copied", written.display()))?;
    Ok(())
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

/// Source of the standard library, which is compiled with the modules. Those without threads take 8
/// to 10 KB less than with rustup's compiled one, which is optimised for speed. The library's own
/// feature saves 2 to 3 KB of that.
enum Library {
    Rustup,
    /// Debian's, with Debian's compiler, and rustup's linker at this path.
    Debian(PathBuf),
}

impl Library {
    /// Returns the source that rustup has or can install now, otherwise Debian's.
    fn find() -> Result<Self> {
        const SOURCE: &str = "rust-src";
        let installed = output(Command::new("rustup").args(["component", "list", "--installed"]));
        if installed.is_ok_and(|components| components.lines().any(|line| line == SOURCE)) {
            return Ok(Self::Rustup);
        }
        eprintln!("xtask: {SOURCE} is missing; installing it with rustup");
        if succeeds(Command::new("rustup").args(["component", "add", SOURCE])) {
            return Ok(Self::Rustup);
        }
        eprintln!("xtask: rustup cannot install {SOURCE}; using Debian's {} and {}", DEBIAN[0], DEBIAN[1]);
        ensure_debian()?;
        let sysroot = PathBuf::from(output(Command::new("rustc").args(["--print", "sysroot"]))?);
        let host = output(Command::new("rustc").args(["--print", "host-tuple"]))?;
        let linker = sysroot.join("lib/rustlib").join(host).join("bin/rust-lld");
        ensure!(linker.is_file(), "expected rustup's linker at {}", linker.display());
        Ok(Self::Debian(linker))
    }

    /// Adds the arguments for compiling the library, which cargo does not have in stable versions
    /// yet.
    fn add_to(&self, cargo: &mut Command) {
        cargo.args(["-Z", "build-std=std,panic_abort", "-Z", "build-std-features=optimize_for_size"]);
        cargo.env("RUSTC_BOOTSTRAP", "1");
        if let Self::Debian(linker) = self {
            cargo.env("RUSTC", "/usr/bin/rustc").env("CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_LINKER", linker);
        }
    }
}

fn ensure_debian() -> Result<()> {
    let version = |package| output(Command::new("dpkg-query").args(["-W", "-f", "${Version}", package])).ok();
    let same = || version(DEBIAN[0]).filter(|_| version(DEBIAN[0]) == version(DEBIAN[1]));
    if same().is_some() {
        return Ok(());
    }
    ensure!(has_apt(), "rustup cannot install rust-src: run `rustup component add rust-src`");
    apt_install("the source of Rust's standard library is missing", &DEBIAN)?;
    same()
        .map(|_| ())
        .with_context(|| format!("{} and {} differ in version after installing both", DEBIAN[0], DEBIAN[1]))
}
