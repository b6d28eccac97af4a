//! Checks of input and output files: no output may replace another file of the same command.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use wgvae::{Checkpoint, Error, Result};

use super::stdio;

/// File of the command line, with the flag that named it.
pub(super) type NamedPath<'a> = (&'static str, &'a Path);

/// Returns the files of a model.
pub(super) fn model_files(checkpoint: &Checkpoint) -> impl Iterator<Item = NamedPath<'_>> {
    checkpoint.files().map(|(name, _)| ("--model", Path::new(name)))
}

/// Fails if a file of `outputs` would replace one of `inputs` or another of `outputs`, or if two of
/// `outputs` are stdout.
pub(super) fn check_replaced(inputs: &[NamedPath<'_>], outputs: &[NamedPath<'_>]) -> Result<()> {
    let files = inputs.iter().filter(|(_, path)| !stdio::is_meant(path));
    let mut taken: BTreeMap<PathBuf, &str> = files.map(|(flag, path)| (whole(path), *flag)).collect();
    for (flag, path) in outputs {
        if let Some(other) = taken.insert(whole(path), flag) {
            return Err(Error::input(
                *flag,
                format!("a different file than {other} names"),
                path.display().to_string(),
            ));
        }
    }
    Ok(())
}

/// Returns the path that all names of one file have in common. The file need not exist yet.
fn whole(path: &Path) -> PathBuf {
    path.canonicalize().or_else(|_| std::path::absolute(path)).unwrap_or_else(|_| path.to_owned())
}
