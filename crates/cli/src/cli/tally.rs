//! Count of the input files of a folder that are done, and of the time that they took.

use std::path::Path;
use std::time::Instant;

use super::stderr::{note, say};

/// Count of the input files whose output is written.
#[derive(Debug)]
pub(super) struct Tally<'a> {
    output: &'a Path,
    start: Instant,
    /// Number of all input files.
    of: usize,
    files: usize,
    pictures: usize,
}

impl<'a> Tally<'a> {
    /// Begins to count `of` input files, whose output goes to `output`.
    pub(super) fn begin(output: &'a Path, of: usize) -> Self {
        Self { output, start: Instant::now(), of, files: 0, pictures: 0 }
    }

    /// Counts one more input file, with this number of pictures.
    pub(super) fn add(&mut self, pictures: usize) {
        self.files += 1;
        self.pictures += pictures;
    }

    /// Prints how many files were done before an error or a signal ended the work on `input`.
    pub(super) fn stopped_at(&self, input: &Path) {
        let Self { output, of, files, .. } = self;
        note(output, &format!("the output of {files} of {of} input files is written; stopped at {}", input.display()));
    }

    /// Prints the number of pictures, and their rate.
    pub(super) fn finish(self) {
        let (pictures, seconds) = (self.pictures, self.start.elapsed().as_secs_f64());
        let kind = if pictures == 1 { "picture" } else { "pictures" };
        let rate = pictures as f64 / seconds.max(f64::MIN_POSITIVE);
        say(&format!("{pictures} {kind} in {seconds:.1} s, {rate:.1} a second"));
    }
}
