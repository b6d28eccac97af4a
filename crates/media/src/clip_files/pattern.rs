//! Names of numbered files, in the notation of C's printf: `frames/%05d.png`.

use std::path::{Path, PathBuf};

use wgvae::{Error, Result};

/// Most digits that zeros may fill: the number of digits of the largest u64.
const MOST_DIGITS: usize = 19;

/// A file name with a number in it: `%d`, or `%05d` for at least five digits. `%%` is a percent
/// sign.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pattern {
    text: PathBuf,
    folder: PathBuf,
    before: String,
    digits: usize,
    after: String,
}

/// The range of existing files that match a pattern.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Found {
    /// Lowest number.
    pub first: u64,
    /// Highest number.
    pub last: u64,
    /// Number of files.
    pub count: u64,
}

impl Pattern {
    /// True if `path` looks like a pattern, valid or not: its file name has a `%`, then only
    /// digits, then a `d`.
    pub fn is_meant(path: &Path) -> bool {
        let name = path.file_name().unwrap_or_default().to_string_lossy().replace("%%", "");
        name.split('%').skip(1).any(|rest| rest.trim_start_matches(|c: char| c.is_ascii_digit()).starts_with('d'))
    }

    /// Parses a pattern.
    ///
    /// # Errors
    /// [`Error::Input`] if the file name does not have exactly one valid placeholder.
    pub fn new(path: &Path) -> Result<Self> {
        let wrong = |found: &str| {
            let expected = "one %d, or %05d for five digits, in the file's name (%% for a percent sign)";
            Error::input(format!("pattern {}", path.display()), expected, found)
        };
        let name =
            path.file_name().and_then(|name| name.to_str()).ok_or_else(|| wrong("a file name that is not UTF-8"))?;
        let (mut before, mut digits, mut after) = (String::new(), None, String::new());
        let mut rest = name;
        while let Some((text, place)) = rest.split_once('%') {
            let side = if digits.is_none() { &mut before } else { &mut after };
            side.push_str(text);
            if let Some(tail) = place.strip_prefix('%') {
                side.push('%');
                rest = tail;
                continue;
            }
            let (width, tail) = place.split_once('d').ok_or_else(|| wrong("a % without d"))?;
            if digits.replace(digit_count(width).ok_or_else(|| wrong(&format!("%{width}d")))?).is_some() {
                return Err(wrong("two of them"));
            }
            rest = tail;
        }
        let digits = digits.ok_or_else(|| wrong("none"))?;
        after.push_str(rest);
        let folder = path.parent().map(Path::to_owned).unwrap_or_default();
        Ok(Self { text: path.to_owned(), folder, before, digits, after })
    }

    /// Returns the pattern as it was given.
    pub fn path(&self) -> &Path {
        &self.text
    }

    /// Returns the path of the file with this number.
    pub fn file(&self, number: u64) -> PathBuf {
        let Self { folder, before, digits, after, .. } = self;
        folder.join(format!("{before}{number:0digits$}{after}"))
    }

    /// Returns the number of the file called `name`, or `None` if the pattern does not make this
    /// name.
    fn number(&self, name: &str) -> Option<u64> {
        let digits = name.strip_prefix(&self.before)?.strip_suffix(&self.after)?;
        let number = digits.bytes().all(|digit| digit.is_ascii_digit()).then(|| digits.parse().ok()).flatten()?;
        (format!("{number:0width$}", width = self.digits) == digits).then_some(number)
    }

    /// Finds the existing files of this pattern. Returns `None` if there are none.
    ///
    /// # Errors
    /// [`Error::Io`] for a folder that cannot be read.
    pub fn find(&self) -> Result<Option<Found>> {
        let folder = if self.folder.as_os_str().is_empty() { Path::new(".") } else { &self.folder };
        let failed = |source| Error::io(folder.display(), source);
        let mut found: Option<Found> = None;
        for entry in std::fs::read_dir(folder).map_err(failed)? {
            let name = entry.map_err(failed)?.file_name();
            let Some(number) = name.to_str().and_then(|name| self.number(name)) else { continue };
            let so_far = found.unwrap_or(Found { first: number, last: number, count: 0 });
            found = Some(Found {
                first: so_far.first.min(number),
                last: so_far.last.max(number),
                count: so_far.count.saturating_add(1),
            });
        }
        Ok(found)
    }

    /// Finds the existing files, and requires every number from the lowest to the highest.
    ///
    /// # Errors
    /// [`Error::Input`] if there are none, or one is missing; [`Error::Io`].
    pub fn find_all(&self) -> Result<Found> {
        let found = self.find()?.ok_or_else(|| self.wrong("at least one such file".to_owned(), "none".to_owned()))?;
        if found.last - found.first == found.count - 1 {
            return Ok(found);
        }
        let missing = (found.first..found.last).find(|&number| !self.file(number).exists()).unwrap_or(found.last);
        let expected = format!("every number from {} to {}", found.first, found.last);
        Err(self.wrong(expected, format!("no {}", self.file(missing).display())))
    }

    fn wrong(&self, expected: String, found: String) -> Error {
        Error::input(format!("frames {}", self.text.display()), expected, found)
    }
}

/// Parses the width of a placeholder: nothing, or a zero and the number of digits.
fn digit_count(width: &str) -> Option<usize> {
    if width.is_empty() {
        return Some(1);
    }
    let digits = width.strip_prefix('0')?;
    digits.parse().ok().filter(|digits| (1..=MOST_DIGITS).contains(digits) && !width.contains('+'))
}
