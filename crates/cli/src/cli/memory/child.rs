//! Child processes: starts this program again for one request and waits for the answer, or for
//! Ctrl-C.

use std::io::Read;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;
use std::time::Duration;

use wgvae::device::{DeviceChoice, DeviceError};
use wgvae::{Error, Result};
use wgvae_memory_report::Adapter;

use super::job::{Answer, Request};
use crate::cli::interrupt::Interrupt;

/// Name of the hidden command; see [`super::job`].
pub(in crate::cli) const COMMAND: &str = "memory-job";

/// Time between two checks of a child process.
const LOOK: Duration = Duration::from_millis(20);

/// Has a child process carry out `request`, started through the program `through` if given. A child
/// that ends without an answer gives [`Answer::Failed`].
///
/// # Errors
/// [`Error::Cancelled`] after Ctrl-C; [`Error::Io`] if the child cannot be started.
pub(super) fn ask(request: &Request, through: Option<&str>, interrupt: &Interrupt) -> Result<Answer> {
    let request = serde_json::to_string(request).map_err(|error| Error::format("request", error))?;
    let this = std::env::current_exe().map_err(|source| Error::io("wgvae itself", source))?;
    // If the user starts it as `ld-linux.so --library-path ... wgvae`, the system reports the
    // loader as this program.
    if let Some(loader) = this.file_name().map(|name| name.to_string_lossy()).filter(|name| name.starts_with("ld-")) {
        return Err(Error::input(
            "start of wgvae",
            "a direct start (--through names a program that sets up a driver)",
            format!("a start through {loader}"),
        ));
    }
    let mut command = match through {
        None => Command::new(&this),
        Some(program) => {
            let mut command = Command::new(program);
            command.arg(&this);
            command
        }
    };
    command.arg(COMMAND).arg(request).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command
        .spawn()
        .map_err(|source| Error::io(through.map_or_else(|| this.display().to_string(), str::to_owned), source))?;
    let (stdout, stderr) = (reader(child.stdout.take()), reader(child.stderr.take()));
    let status = wait(&mut child, interrupt)?;
    let (stdout, stderr) = (stdout.join().unwrap_or_default(), stderr.join().unwrap_or_default());
    // The answer is the last line that parses, because drivers may print, too.
    if let Some(answer) = stdout.lines().rev().find_map(|line| serde_json::from_str(line).ok()) {
        return Ok(answer);
    }
    let said = stderr.lines().map(str::trim).rfind(|line| !line.is_empty()).unwrap_or("it printed nothing on stderr");
    Ok(Answer::Failed(format!("the process ended without an answer ({status}): {said}")))
}

fn wait(child: &mut Child, interrupt: &Interrupt) -> Result<std::process::ExitStatus> {
    let failed = |source| Error::io("process of a measurement", source);
    loop {
        if let Some(status) = child.try_wait().map_err(failed)? {
            // Ctrl-C ends the child, too, and the flag may be set a little later.
            if !status.success() {
                std::thread::sleep(2 * LOOK);
            }
            return if interrupt.cancel().load(Ordering::Relaxed) { Err(Error::Cancelled) } else { Ok(status) };
        }
        if interrupt.cancel().load(Ordering::Relaxed) {
            child.kill().and_then(|()| child.wait()).map_err(failed)?;
            return Err(Error::Cancelled);
        }
        std::thread::sleep(LOOK);
    }
}

/// Reads all of a pipe in a thread, as it fills.
fn reader(pipe: Option<impl Read + Send + 'static>) -> JoinHandle<String> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(mut pipe) = pipe
            && let Err(error) = pipe.read_to_end(&mut bytes)
        {
            log::warn!("reading what a measurement said: {error}");
        }
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

/// A device to measure. Its number is that of the adapter; the machine's own cores have none.
pub(super) type Numbered = (Option<usize>, Adapter);

/// Returns the devices of the kind `device` that match `wanted`, or all: all adapters, or the
/// machine's own cores, for [`DeviceChoice::Auto`] if it has no adapter.
///
/// # Errors
/// [`Error::Input`] for the name of an adapter beside the cores, and for a child process that
/// fails; [`Error::Device`] if there is no adapter; see also [`ask`].
pub(super) fn devices(
    device: DeviceChoice,
    wanted: Option<&str>,
    through: Option<&str>,
    interrupt: &Interrupt,
) -> Result<Vec<Numbered>> {
    if let (DeviceChoice::Cpu, Some(adapter)) = (device, wanted) {
        return Err(Error::input("--adapter", "use without --device cpu", adapter));
    }
    let cores = || ask(&Request::Cores, through, interrupt);
    let answer = match device {
        DeviceChoice::Cpu => cores()?,
        DeviceChoice::Auto | DeviceChoice::Gpu => {
            match ask(&Request::Adapters(wanted.map(str::to_owned)), through, interrupt)? {
                Answer::NoAdapter(_) if device == DeviceChoice::Auto && wanted.is_none() => cores()?,
                answer => answer,
            }
        }
    };
    match answer {
        Answer::Adapters(found) => Ok(found.into_iter().map(|(number, adapter)| (Some(number), adapter)).collect()),
        Answer::Cores(cores) => Ok(vec![(None, cores)]),
        Answer::NoAdapter(reason) => Err(DeviceError::NoAdapter(reason).into()),
        Answer::Failed(reason) => Err(Error::input("devices", "a list of devices", reason)),
        Answer::Measured(_) => Err(Error::input("devices", "a list of devices", "a measurement")),
    }
}
