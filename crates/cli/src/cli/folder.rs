//! A folder as the input of a command: its files, in natural order of their names.

use std::cmp::Ordering;
use std::path::{Path, PathBuf};

use wgvae::{Error, Result};

use super::stderr::note;

/// Returns the files in the folder at `path`, given by `flag`, whose names have one of `endings`.
/// Ignores hidden files and folders within the folder, and prints how many other files it ignores.
///
/// # Errors
/// [`Error::Io`] for a folder that cannot be read; [`Error::Input`] if it has no such file.
pub(super) fn files_of(flag: &'static str, path: &Path, endings: &[&str]) -> Result<Vec<PathBuf>> {
    let failed = |source| Error::io(path.display(), source);
    let (mut files, mut others) = (Vec::new(), 0);
    for entry in std::fs::read_dir(path).map_err(failed)? {
        let file = entry.map_err(failed)?.path();
        match has_ending(&file, endings) {
            _ if is_hidden(&file) || !file.is_file() => {}
            true => files.push(file),
            false => others += 1,
        }
    }
    if files.is_empty() {
        let expected = format!("a folder with files that end in one of {}", endings.join(", "));
        return Err(Error::input(flag, expected, format!("none in {}", path.display())));
    }
    if others > 0 {
        let files = if others == 1 { "file" } else { "files" };
        note(path, &format!("not used: {others} {files} with endings other than {}", endings.join(", ")));
    }
    files.sort_by(|left, right| natural(&left.to_string_lossy(), &right.to_string_lossy()));
    Ok(files)
}

fn is_hidden(file: &Path) -> bool {
    file.file_name().is_none_or(|name| name.to_string_lossy().starts_with('.'))
}

fn has_ending(file: &Path, endings: &[&str]) -> bool {
    let found = file.extension().unwrap_or_default();
    endings.iter().any(|ending| found.eq_ignore_ascii_case(ending))
}

/// Compares texts so that numbers in them are ordered by value: `a2` comes before `a10`.
fn natural(left: &str, right: &str) -> Ordering {
    let (mut left_rest, mut right_rest) = (left, right);
    while !left_rest.is_empty() && !right_rest.is_empty() {
        let (one, other) = (run(left_rest), run(right_rest));
        let order = match (number(one), number(other)) {
            (Some(one), Some(other)) => one.len().cmp(&other.len()).then(one.cmp(other)),
            _ => one.cmp(other),
        };
        if order != Ordering::Equal {
            return order;
        }
        (left_rest, right_rest) = (&left_rest[one.len()..], &right_rest[other.len()..]);
    }
    // Texts that differ only in leading zeros are ordered, too.
    left_rest.len().cmp(&right_rest.len()).then(left.cmp(right))
}

/// Returns the digits, or else the text without digits, with which `text` begins.
fn run(text: &str) -> &str {
    let digits = text.starts_with(|letter: char| letter.is_ascii_digit());
    let end = text.find(|letter: char| letter.is_ascii_digit() != digits);
    &text[..end.unwrap_or(text.len())]
}

/// Returns the digits of a run of digits, without leading zeros.
fn number(run: &str) -> Option<&str> {
    run.starts_with(|letter: char| letter.is_ascii_digit()).then(|| run.trim_start_matches('0'))
}
