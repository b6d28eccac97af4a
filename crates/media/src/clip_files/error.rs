//! Short constructors for errors about files and arguments.

use wgvae::Error;

/// Makes the error for wrong content of `file`.
pub(super) fn format(file: &str, problem: impl Into<String>) -> Error {
    Error::Format { file: file.to_owned(), problem: problem.into() }
}

/// Makes the error for a `file` that could not be read or written.
pub(super) fn io(file: &str, source: std::io::Error) -> Error {
    Error::Io { path: file.to_owned(), source }
}
