//! `-`: stdin in place of a file that is read, stdout in place of one that is written.

use std::io::{BufRead as _, IsTerminal as _, Read as _};
use std::path::Path;

use wgvae::{Error, Result};

use super::input;

/// What stdin is called in messages.
pub(super) const STDIN: &str = "stdin";

/// How a y4m stream begins.
const Y4M: &[u8] = b"YUV4MPEG2";

/// The most bytes that are taken from stdin, where something is wanted whole.
const MOST: u64 = 4 << 30;

/// Whether `path` means stdin or stdout.
pub(super) fn is_meant(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// All that comes from stdin.
///
/// # Errors
/// [`Error::Io`]; [`Error::Format`] for nothing; [`Error::Input`] for more than anybody means.
pub(super) fn read() -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let read = std::io::stdin().lock().take(MOST + 1).read_to_end(&mut bytes);
    read.map_err(|source| Error::Io { path: STDIN.to_owned(), source })?;
    if bytes.is_empty() {
        return Err(Error::Format { file: STDIN.to_owned(), problem: "it is empty".to_owned() });
    }
    if bytes.len() as u64 > MOST {
        return Err(input(STDIN, format!("at most {}", wgvae::Bytes(MOST)), "more"));
    }
    Ok(bytes)
}

/// Whether what comes from stdin is a clip in y4m. Takes nothing of it.
///
/// # Errors
/// [`Error::Io`].
pub(super) fn has_y4m() -> Result<bool> {
    let mut stdin = std::io::stdin().lock();
    let start = stdin.fill_buf().map_err(|source| Error::Io { path: STDIN.to_owned(), source })?;
    let common = start.len().min(Y4M.len());
    Ok(common > 0 && start[..common] == Y4M[..common])
}

/// Refuses to write what is no text to a terminal.
pub(super) fn check_no_terminal() -> Result<()> {
    if std::io::stdout().is_terminal() {
        return Err(input("--output -", "a pipe or a file (> FILE) to write to", "a terminal"));
    }
    Ok(())
}

/// Refuses a report on stdout, which has text or pictures already.
pub(super) fn check_report(report: Option<&Path>) -> Result<()> {
    match report {
        None => Ok(()),
        Some(path) if is_meant(path) => Err(input("--report", "a file (--json prints the facts)", "-")),
        Some(path) => wgvae::internals::part_file::check_writable(path),
    }
}
