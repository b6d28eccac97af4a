//! Names of numbered files, written as C's printf has them: `frames/%05d.png`.

use std::path::{Path, PathBuf};

use super::error::{input, io};
use crate::error::{Error, Result};

/// Digits that a number may be filled up to: as many as the largest one has.
const MOST_DIGITS: usize = 19;

/// A name with a number in it: `%d`, or `%05d` for at least five digits; `%%` is a percent sign.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pattern {
    text: PathBuf,
    folder: PathBuf,
    before: String,
    digits: usize,
    after: String,
}

/// The files of a pattern that exist.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Found {
    /// The lowest number.
    pub first: u64,
    /// The highest.
    pub last: u64,
    /// How many there are.
    pub count: u64,
}

impl Pattern {
    /// Whether `path` has a number's place, right or wrong: a `%` and later a `d` in its file's
    /// name, with nothing but digits between.
    pub fn is_meant(path: &Path) -> bool {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.split('%').skip(1).any(|rest| rest.trim_start_matches(|c: char| c.is_ascii_digit()).starts_with('d'))
    }

    /// Reads a pattern.
    ///
    /// # Errors
    /// [`Error::Input`] for a file's name without a number's place or with two, or a place of
    /// another kind.
    pub fn new(path: &Path) -> Result<Self> {
        let wrong = |found: &str| {
            let expected = "one %d, or %05d for five digits, in the file's name (%% for a percent sign)";
            input(format!("pattern {}", path.display()), expected, found)
        };
        let name =
            path.file_name().and_then(|name| name.to_str()).ok_or_else(|| wrong("no name of a file in UTF-8"))?;
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

    /// The pattern as it was given.
    pub fn path(&self) -> &Path {
        &self.text
    }

    /// The file with this number.
    pub fn file(&self, number: u64) -> PathBuf {
        let Self { folder, before, digits, after, .. } = self;
        folder.join(format!("{before}{number:0digits$}{after}"))
    }

    /// The number of the file called `name`; none if the pattern does not make this name.
    fn number(&self, name: &str) -> Option<u64> {
        let digits = name.strip_prefix(&self.before)?.strip_suffix(&self.after)?;
        let number = digits.bytes().all(|digit| digit.is_ascii_digit()).then(|| digits.parse().ok()).flatten()?;
        (format!("{number:0width$}", width = self.digits) == digits).then_some(number)
    }

    /// Looks for its files; none where there are none.
    ///
    /// # Errors
    /// [`Error::Io`] for a folder that cannot be read.
    pub fn find(&self) -> Result<Option<Found>> {
        let folder = if self.folder.as_os_str().is_empty() { Path::new(".") } else { &self.folder };
        let failed = |source| io(&folder.display().to_string(), source);
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

    /// Looks for files without a gap from the lowest to the highest number.
    ///
    /// # Errors
    /// [`Error::Input`] where there are none, or one is missing; [`Error::Io`].
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
        input(format!("frames {}", self.text.display()), expected, found)
    }
}

/// The digits that a place asks for: none, or a zero and how many.
fn digit_count(width: &str) -> Option<usize> {
    if width.is_empty() {
        return Some(1);
    }
    let digits = width.strip_prefix('0')?;
    digits.parse().ok().filter(|digits| (1..=MOST_DIGITS).contains(digits) && !width.contains('+'))
}
