//! Tests of the Python package. It is either assembled from cargo's output and tested with numpy
//! alone, or built as a wheel from its sdist and tested with torch, diffusers and Ray.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::command::{output, run, succeeds};
use crate::install::{apt_install, ensure_program, has_apt};
use crate::paths::{target, wgvae};

/// Requirements of the tests, by version and hash: the basic ones, and with `EXTRAS` the optional
/// ones.
const REQUIREMENTS: &str = "python/tests/requirements.txt";
const EXTRAS: &str = "python/tests/requirements-extras.txt";

/// Builder of wheels, in the version of python/pyproject.toml.
const MATURIN: &str = "maturin==1.16.0";

/// Runs lints and the tests that need numpy alone, with the module that cargo has built.
pub(crate) fn test() -> Result<()> {
    let python = environment("plain", REQUIREMENTS)?;
    run(Command::new(&python)
        .args(["-m", "mypy", "--config-file", "python/pyproject.toml", "python/wgvae", "python/tests"])
        .arg("--cache-dir")
        .arg(folder()?.join("mypy")))?;
    let built = assembled()?;
    run(tests(&python)?.args(["-m", "not extras"]).env("PYTHONPATH", &built))
}

/// Returns a program that [`REQUIREMENTS`] brings.
pub(crate) fn tool(name: &str) -> Result<Command> {
    let python = environment("plain", REQUIREMENTS)?;
    Ok(Command::new(python.with_file_name(format!("{name}{}", std::env::consts::EXE_SUFFIX))))
}

/// Builds the sdist and from it the wheel, installs it into a fresh environment and runs all tests
/// there.
pub(crate) fn test_wheel() -> Result<()> {
    let (folder, tools) = (folder()?, environment("tools", "")?);
    run(Command::new(&tools).args(["-m", "pip", "install", "--quiet", MATURIN]))?;
    let (sdist, wheels) = (folder.join("sdist"), folder.join("wheels"));
    for old in [&sdist, &wheels] {
        if old.exists() {
            fs::remove_dir_all(old)?;
        }
    }
    run(Command::new(&tools)
        .args(["-m", "maturin", "sdist", "--manifest-path", "python/Cargo.toml", "--out"])
        .arg(&sdist))?;
    run(Command::new(&tools)
        .args(["-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir"])
        .args([&wheels, &only_file(&sdist)?])
        .env("CARGO_TARGET_DIR", folder.join("wheel")))?;
    let python = environment("extras", EXTRAS)?;
    let wheel = only_file(&wheels)?;
    run(Command::new(&python).args(["-m", "pip", "install", "--quiet", "--no-deps", "--force-reinstall"]).arg(wheel))?;
    run(&mut tests(&python)?)
}

/// Returns the command of the tests. It runs in a folder where no subfolder can be mistaken for the
/// package.
fn tests(python: &Path) -> Result<Command> {
    let mut command = Command::new(python);
    command
        .args([
            "-m",
            "pytest",
            "-c",
            "python/pyproject.toml",
            "--rootdir",
            "python",
            "-p",
            "no:cacheprovider",
            "--quiet",
            "--durations=5",
        ])
        .arg("python/tests")
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .env("HYPOTHESIS_STORAGE_DIRECTORY", folder()?.join("hypothesis"))
        .env("WGVAE_CLI", std::path::absolute(wgvae())?);
    Ok(command)
}

/// Makes a folder with the package: its Python files, and the module that `cargo build --workspace`
/// has built.
fn assembled() -> Result<PathBuf> {
    let built = folder()?.join("built");
    let package = built.join("wgvae");
    if package.exists() {
        fs::remove_dir_all(&package)?;
    }
    copy(Path::new("python/wgvae"), &package)?;
    let (prefix, suffix) = (std::env::consts::DLL_PREFIX, std::env::consts::DLL_SUFFIX);
    let module = target().join("release").join(format!("{prefix}wgvae_native{suffix}"));
    let name = if cfg!(windows) { "_native.pyd" } else { "_native.abi3.so" };
    fs::copy(&module, package.join(name)).with_context(|| format!("could not copy {}", module.display()))?;
    Ok(built)
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let (path, name) = (entry.path(), entry.file_name());
        if path.is_dir() && name != OsStr::new("__pycache__") {
            copy(&path, &to.join(name))?;
        } else if path.is_file() {
            fs::copy(&path, to.join(name))?;
        }
    }
    Ok(())
}

/// Returns the interpreter of a virtual environment below `target/`, with the packages in the file
/// `requirements` unless that is empty. Makes it anew if that file has changed.
fn environment(name: &str, requirements: &str) -> Result<PathBuf> {
    let environment = folder()?.join(name);
    let python = environment.join(if cfg!(windows) { "Scripts/python.exe" } else { "bin/python" });
    let wanted = if requirements.is_empty() { String::new() } else { fs::read_to_string(requirements)? };
    let stamp = environment.join("requirements.txt");
    if fs::read_to_string(&stamp).is_ok_and(|installed| installed == wanted)
        && succeeds(Command::new(&python).arg("--version"))
    {
        return Ok(python);
    }
    if environment.exists() {
        fs::remove_dir_all(&environment)?;
    }
    make(&interpreter()?, &environment)?;
    if !requirements.is_empty() {
        run(Command::new(&python).args([
            "-m",
            "pip",
            "install",
            "--quiet",
            "--require-hashes",
            "--requirement",
            requirements,
        ]))?;
    }
    // Written last, so that its presence shows that all is complete.
    fs::write(stamp, wanted)?;
    Ok(python)
}

/// Returns a Python that the package supports.
fn interpreter() -> Result<PathBuf> {
    let names = ["python3", "python3.14", "python3.13", "python3.12", "python3.11", "python"];
    let python = ensure_program(&names, "python3", None)?;
    let version = output(Command::new(&python).args(["-c", "import sys; print(sys.version_info >= (3, 11))"]))?;
    ensure!(version == "True", "expected Python 3.11 or newer, found an older one at {}", python.display());
    Ok(python)
}

/// Makes a virtual environment. Debian has the needed module in a package of its own.
fn make(python: &Path, environment: &Path) -> Result<()> {
    if !succeeds(Command::new(python).args(["-c", "import ensurepip"])) && has_apt() {
        apt_install("Python has no ensurepip", &["python3-venv"])?;
    }
    run(Command::new(python).args(["-m", "venv"]).arg(environment))
}

fn folder() -> Result<PathBuf> {
    let folder = std::path::absolute(target().join("python"))?;
    fs::create_dir_all(&folder)?;
    Ok(folder)
}

fn only_file(folder: &Path) -> Result<PathBuf> {
    let files = fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<Result<Vec<PathBuf>>>()?;
    let [file] = files.as_slice() else {
        anyhow::bail!("expected one file in {}, found {}", folder.display(), files.len())
    };
    Ok(file.clone())
}
