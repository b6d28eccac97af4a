//! Checks of input and output files: no output may replace another file of the same command.

use std::path::Path;

use wgvae::{Checkpoint, Error, Result};

use super::stdio;

/// File of the command line, with the flag that named it.
pub(super) type Named<'a> = (&'static str, &'a Path);

/// Returns the files of a model.
pub(super) fn model_files(checkpoint: &Checkpoint) -> impl Iterator<Item = Named<'_>> {
    checkpoint.files().map(|(name, _)| ("--model", Path::new(name)))
}

/// Fails if a file of `outputs` would replace one of `inputs` or another of `outputs`.
pub(super) fn check_replaced(inputs: &[Named<'_>], outputs: &[Named<'_>]) -> Result<()> {
    for (index, (flag, path)) in outputs.iter().enumerate() {
        if stdio::is_meant(path) {
            continue;
        }
        let taken = inputs.iter().chain(&outputs[..index]);
        if let Some((other, _)) = taken.into_iter().find(|(_, taken)| same(taken, path)) {
            return Err(Error::input(
                *flag,
                format!("a different file than {other} names"),
                path.display().to_string(),
            ));
        }
    }
    Ok(())
}

/// Returns true if both paths lead to one file, which need not exist yet.
fn same(left: &Path, right: &Path) -> bool {
    let whole = |path: &Path| path.canonicalize().or_else(|_| std::path::absolute(path)).ok();
    left == right || whole(left).is_some_and(|left| Some(left) == whole(right))
}
