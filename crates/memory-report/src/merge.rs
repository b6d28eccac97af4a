//! Reading of the reports to put side by side.

use std::path::{Path, PathBuf};

use wgvae::{Error, Result};

use crate::MemoryReport;

/// Longest report that is read, in bytes. A report of a thousand measurements has about 700
/// thousand.
const MAX_BYTES: u64 = 16 << 20;

/// Reads all of `paths`, in this order.
///
/// # Errors
/// [`Error::Io`], or [`Error::Format`] for a file that is too long or no report.
pub fn read(paths: &[PathBuf]) -> Result<Vec<MemoryReport>> {
    paths.iter().map(|path| read_one(path)).collect()
}

fn read_one(path: &Path) -> Result<MemoryReport> {
    let name = path.display().to_string();
    let failed = |source| Error::io(&name, source);
    let bytes = std::fs::metadata(path).map_err(failed)?.len();
    if bytes > MAX_BYTES {
        return Err(Error::format(name, format!("{bytes} bytes, but a memory report has at most {MAX_BYTES}")));
    }
    let bytes = std::fs::read(path).map_err(failed)?;
    let text = String::from_utf8(bytes).map_err(|error| Error::format(&name, format!("not a JSON text: {error}")))?;
    MemoryReport::from_json(&name, &text)
}
