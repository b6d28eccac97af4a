//! Handling of `-` on the command line: stdin in place of an input file, stdout in place of an
//! output file.

use std::io::{BufRead as _, IsTerminal as _, Read as _};
use std::path::Path;

use wgvae::{Error, Result};

/// Name of stdin in messages.
pub(super) const STDIN: &str = "stdin";

/// First bytes of a y4m stream.
const Y4M: &[u8] = b"YUV4MPEG2";

/// Most bytes read from stdin when all of it is needed: 4 GiB.
const MOST: u64 = 4 << 30;

/// Returns true if `path` means stdin or stdout.
pub(super) fn is_meant(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// Reads all of stdin.
///
/// # Errors
/// [`Error::Io`]; [`Error::Format`] if stdin is empty; [`Error::Input`] above 4 GiB.
pub(super) fn read() -> Result<Vec<u8>> {
    read_all(STDIN, std::io::stdin().lock())
}

/// Reads all of stdin, or of a pipe or device at `path`, which can be read only once and in order.
/// Returns `None` for a file.
///
/// # Errors
/// See [`read`].
pub(super) fn read_pipe(path: &Path) -> Result<Option<Vec<u8>>> {
    if is_meant(path) {
        return read().map(Some);
    }
    let failed = |source| Error::io(path.display(), source);
    let kind = std::fs::metadata(path).map_err(failed)?.file_type();
    if kind.is_file() || kind.is_dir() {
        return Ok(None);
    }
    read_all(&path.display().to_string(), std::fs::File::open(path).map_err(failed)?).map(Some)
}

fn read_all(name: &str, from: impl std::io::Read) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    from.take(MOST + 1).read_to_end(&mut bytes).map_err(|source| Error::io(name, source))?;
    if bytes.is_empty() {
        return Err(Error::format(name, "it is empty"));
    }
    if bytes.len() as u64 > MOST {
        return Err(Error::input(name, format!("at most {}", wgvae::Bytes(MOST)), "more"));
    }
    Ok(bytes)
}

/// Returns true if stdin begins like a y4m clip. Consumes no bytes.
///
/// # Errors
/// [`Error::Io`].
pub(super) fn has_y4m() -> Result<bool> {
    let mut stdin = std::io::stdin().lock();
    let start = stdin.fill_buf().map_err(|source| Error::io(STDIN, source))?;
    let common = start.len().min(Y4M.len());
    Ok(common > 0 && start[..common] == Y4M[..common])
}

/// Fails if stdout is a terminal, because binary data does not belong there.
pub(super) fn check_no_terminal() -> Result<()> {
    if std::io::stdout().is_terminal() {
        return Err(Error::input("--output -", "a pipe or a file (> FILE) to write to", "a terminal"));
    }
    Ok(())
}

/// Fails for a report on stdout, which is already used for text or pictures, and for one that
/// cannot be written. It may lie in the folder `output` that is not there yet.
pub(super) fn check_report(report: Option<&Path>, output: &Path) -> Result<()> {
    match report {
        None => Ok(()),
        Some(path) if path.parent() == Some(output) && output.extension().is_none() && !output.exists() => Ok(()),
        Some(path) if is_meant(path) => Err(Error::input("--report", "a file (--json prints the facts)", "-")),
        Some(path) => wgvae_media::part_file::check_writable(path),
    }
}
