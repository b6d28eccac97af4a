//! One process for each device: this program again, with another driver. It reads jobs, and writes
//! the result of each.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::Stdio;

use anyhow::{Context, Result, anyhow, ensure};
use serde::{Deserialize, Serialize};

use crate::devices::Device;
use crate::driver::Driver;
use crate::figures::Figures;
use crate::kernels::Kernel;
use crate::spirv::{Face, Parsed};
use crate::table::Row;

/// One kernel to compile, for one caller.
#[derive(Serialize, Deserialize)]
struct Job {
    kernel: String,
    face: Face,
    buffers: u32,
    needs_f16: bool,
    spirv: Vec<u32>,
}

/// Kernels to compile, for both callers of the compiler.
pub(crate) struct Jobs {
    jobs: Vec<Job>,
    workgroup_bytes: BTreeMap<String, u32>,
}

/// The first line of a device's process.
#[derive(Serialize, Deserialize)]
struct Greeting {
    device: String,
    driver: String,
}

#[derive(Serialize, Deserialize)]
struct Done {
    kernel: String,
    face: Face,
    figures: Figures,
}

/// Results of one device's compiler for all kernels.
pub(crate) struct Measured {
    /// Version of the driver, for example `Mesa 26.1.6-1`.
    pub(crate) driver: String,
    pub(crate) rows: BTreeMap<String, Row>,
}

impl Jobs {
    /// Translates the kernels to SPIR-V.
    ///
    /// # Errors
    /// Problems that naga finds in a kernel.
    pub(crate) fn new(kernels: &[Kernel]) -> Result<Self> {
        let mut all = Self { jobs: Vec::new(), workgroup_bytes: BTreeMap::new() };
        for kernel in kernels {
            let parsed = Parsed::new(&kernel.text).with_context(|| kernel.name.clone())?;
            all.workgroup_bytes.insert(kernel.name.clone(), parsed.workgroup_bytes());
            for face in Face::ALL.into_iter().filter(|face| kernel.in_browsers || *face == Face::Native) {
                all.jobs.push(Job {
                    kernel: kernel.name.clone(),
                    face,
                    buffers: kernel.buffers,
                    needs_f16: kernel.text.starts_with("enable f16;"),
                    spirv: parsed.spirv(face).with_context(|| kernel.name.clone())?,
                });
            }
        }
        Ok(all)
    }

    /// Compiles the kernels for `device` with the drivers in `mesa`. If `code` is given, writes the
    /// machine code into that folder.
    ///
    /// # Errors
    /// If the process ends before it has compiled all kernels. The error names the kernel before
    /// the failing one.
    pub(crate) fn measure(&self, device: &Device, mesa: &Path, code: Option<&Path>) -> Result<Measured> {
        let mut command = device.command(mesa, &std::env::current_exe()?);
        command.arg("--worker").arg(device.id);
        if let Some(folder) = code {
            command.arg("--code").arg(folder);
        }
        let mut process = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let mut input = process.stdin.take().context("no pipe to the process")?;
        let mut lines = BufReader::new(process.stdout.take().context("no pipe from the process")?).lines();
        let jobs = serde_json::to_vec(&self.jobs)?;
        // The process reads all jobs before it writes, so neither side blocks the other.
        let sent = input.write_all(&jobs);
        drop(input);
        let mut measured = Measured { driver: String::new(), rows: BTreeMap::new() };
        let mut done = Vec::new();
        if let Some(greeting) = lines.next() {
            measured.driver = serde_json::from_str::<Greeting>(&greeting?)?.driver;
        }
        for line in lines {
            done.push(serde_json::from_str::<Done>(&line?)?);
        }
        let status = process.wait()?;
        let last = done.last().map_or("the first", |done| &done.kernel);
        ensure!(status.success(), "{}: the driver ended ({status}) at the kernel after {last}", device.name);
        sent?;
        for Done { kernel, face, figures } in done {
            let workgroup_bytes =
                *self.workgroup_bytes.get(&kernel).ok_or_else(|| anyhow!("unknown kernel {kernel}"))?;
            let row = measured.rows.entry(kernel).or_insert(Row { workgroup_bytes, native: None, firefox: None });
            match face {
                Face::Native => row.native = Some(figures),
                Face::Firefox => row.firefox = Some(figures),
            }
        }
        Ok(measured)
    }
}

/// Runs the process of one device: jobs from standard input, one line for each to standard output.
pub(crate) fn work(device: &Device, code: Option<&Path>) -> Result<()> {
    let jobs: Vec<Job> = serde_json::from_reader(std::io::stdin().lock())?;
    let driver = Driver::new()?;
    say(&Greeting { device: driver.name.clone(), driver: driver.version.clone() })?;
    for job in jobs.iter().filter(|job| driver.shader_f16 || !job.needs_f16) {
        let compiled = driver.compile(&job.spirv, job.buffers).with_context(|| job.kernel.clone())?;
        if let Some(folder) = code {
            let name = format!("{} {} {}.txt", job.kernel, device.id, job.face.name());
            std::fs::write(folder.join(name), &compiled.code)?;
        }
        let figures = Figures::new(device.maker, &compiled);
        say(&Done { kernel: job.kernel.clone(), face: job.face, figures })?;
    }
    Ok(())
}

fn say(line: &impl Serialize) -> Result<()> {
    let mut output = std::io::stdout().lock();
    serde_json::to_writer(&mut output, line)?;
    output.write_all(b"\n")?;
    Ok(output.flush()?)
}
