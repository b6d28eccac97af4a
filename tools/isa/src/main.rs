//! Machine code of every kernel by real drivers, for devices that are not present: registers,
//! occupancy, spills, instructions. `cargo xtask isa` unpacks the drivers and starts this program.

mod compare;
mod devices;
mod driver;
mod figures;
mod host;
mod hot_loop;
mod kernels;
mod measure;
mod report;
mod spirv;
mod table;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, bail, ensure};
use clap::Parser;

use crate::compare::compare;
use crate::devices::{DEVICES, Device};
use crate::measure::{Jobs, work};
use crate::table::Table;

/// Paths of the committed tables from the repository's root: one for this program, one for people.
const TABLE: &str = "benches/results/isa.json";
const REPORT: &str = "benches/results/isa.md";

#[derive(Parser)]
#[command(
    name = "cargo xtask isa",
    about = "Compiles every kernel for GPUs that are not here, and compares with benches/results/isa.json."
)]
struct Arguments {
    /// Write the tables in benches/results instead of comparing with them.
    #[arg(long)]
    accept: bool,
    /// Compile for these devices only.
    #[arg(long)]
    device: Vec<String>,
    /// Compile only kernels whose name contains this text, and print their figures.
    #[arg(long, default_value = "")]
    only: String,
    /// Compile a specialised WGSL file instead of the kernels, and print its figures.
    #[arg(long, conflicts_with = "only")]
    wgsl: Option<PathBuf>,
    /// Write the machine code of each kernel to this folder.
    #[arg(long)]
    code: Option<PathBuf>,
    /// Measure the host time for each step of a decode instead: benches/results/host.md.
    #[arg(long, conflicts_with_all = ["accept", "device", "only", "wgsl", "code"])]
    host: bool,
    /// Folder with the drivers.
    #[arg(long, hide = true)]
    mesa: Option<PathBuf>,
    /// Compile the jobs on standard input for this device.
    #[arg(long, hide = true)]
    worker: Option<String>,
    /// Decode on the device that is present.
    #[arg(long, hide = true)]
    host_worker: bool,
}

impl Arguments {
    fn mesa(&self) -> Result<&Path> {
        self.mesa.as_deref().context("expected --mesa: start this by `cargo xtask isa`")
    }
}

fn main() -> ExitCode {
    match run(&Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("isa: error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &Arguments) -> Result<()> {
    if let Some(id) = &arguments.worker {
        return work(device(id)?, arguments.code.as_deref());
    }
    if arguments.host_worker {
        return host::work();
    }
    if arguments.host {
        return host::measure(arguments.mesa()?);
    }
    let is_part = !arguments.device.is_empty() || !arguments.only.is_empty() || arguments.wgsl.is_some();
    ensure!(!(is_part && arguments.accept), "a part of the table cannot be accepted");
    let devices: Vec<&Device> = match arguments.device.as_slice() {
        [] => DEVICES.iter().collect(),
        ids => ids.iter().map(|id| device(id)).collect::<Result<_>>()?,
    };
    let old = Table::read(Path::new(TABLE))?;
    let mut new = measure(arguments, &devices)?;
    if arguments.accept {
        new.keep_times(&old);
        std::fs::write(TABLE, new.to_json()?)?;
        std::fs::write(REPORT, report::markdown(&new))?;
        eprintln!("isa: wrote {TABLE} and {REPORT}");
        return Ok(());
    }
    if is_part {
        print!("{}", report::plain(&new));
    }
    if arguments.wgsl.is_some() { Ok(()) } else { judge(&new, &old, arguments.only.is_empty()) }
}

fn device(id: &str) -> Result<&'static Device> {
    let known = || DEVICES.map(|device| device.id).join(", ");
    DEVICES.iter().find(|device| device.id == id).with_context(|| format!("no device {id:?}: there are {}", known()))
}

fn measure(arguments: &Arguments, devices: &[&Device]) -> Result<Table> {
    let mesa = arguments.mesa()?;
    if let Some(folder) = &arguments.code {
        std::fs::create_dir_all(folder)?;
    }
    let mut table = Table::default();
    for device in devices {
        let kernels = match &arguments.wgsl {
            Some(path) => vec![kernels::from_file(path)?],
            None => kernels::kernels(device.maker, &arguments.only)?,
        };
        let jobs = Jobs::new(&kernels)?;
        eprintln!("isa: {} kernels for {}", kernels.len(), device.name);
        let measured = jobs.measure(device, mesa, arguments.code.as_deref())?;
        table.driver = measured.driver;
        table.devices.insert(device.id.to_owned(), measured.rows);
    }
    Ok(table)
}

/// Prints the differences from the committed table. Returns an error if a figure got worse.
fn judge(new: &Table, old: &Table, all: bool) -> Result<()> {
    let findings = compare(new, old);
    for line in &findings.worse {
        eprintln!("isa: {line}");
    }
    if all {
        findings.gone.iter().for_each(|line| eprintln!("isa: no longer there: {line}"));
    }
    if findings.better > 0 {
        eprintln!("isa: better than in the table: {}; `cargo xtask isa --accept` keeps that", findings.better);
    }
    match findings.worse.len() {
        0 => Ok(()),
        count if new.driver == old.driver => bail!(
            "{count} figures are worse than in {TABLE}. If this is intended, `cargo xtask isa --accept` replaces it"
        ),
        count => bail!(
            "{count} figures are worse than in {TABLE}, which was made with {}; found {}. Run `cargo xtask isa --accept` on an unchanged tree first, to tell the driver's changes from yours",
            old.driver,
            new.driver
        ),
    }
}
