//! Errors about files and arguments, in a line.

use crate::error::Error;

/// An argument, or what is in a file, is not what it must be.
pub(super) fn input(what: impl Into<String>, expected: impl Into<String>, found: impl Into<String>) -> Error {
    Error::Input { what: what.into(), expected: expected.into(), found: found.into() }
}

/// The content of `file` is wrong.
pub(super) fn format(file: &str, problem: impl Into<String>) -> Error {
    Error::Format { file: file.to_owned(), problem: problem.into() }
}

/// `file` could not be read or written.
pub(super) fn io(file: &str, source: std::io::Error) -> Error {
    Error::Io { path: file.to_owned(), source }
}
