//! Errors of this crate, one variant for each cause. A message names the object, the expected value
//! and the found value.

use std::fmt;

use crate::printable::Printable;
use crate::tensor::{Bytes, Size};

/// Result of every fallible call of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// The reason why a call failed. Messages are lower case, without a final dot, and carry names and
/// numbers.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file does not match its name or header: it is truncated, corrupt, or in another format.
    #[error("{}", Printable(format_args!("{file}: {problem}")))]
    Format {
        /// The file or byte source.
        file: String,
        /// The problem, with numbers.
        problem: String,
    },
    /// A tensor of a file has a shape, type or content that the model cannot use.
    #[error("{}", Printable(format_args!("tensor \"{tensor}\": expected {expected}, found {found}")))]
    Tensor {
        /// The tensor's name, as the file spells it.
        tensor: String,
        /// The shape, type or content that the model needs.
        expected: String,
        /// The shape, type or content that the file has.
        found: String,
    },
    /// The model needs tensors that its files do not hold.
    #[error("{}", Printable(format_args!("{file}: {} missing tensor(s), first \"{}\"", .tensors.len(), first(.tensors))))]
    MissingTensors {
        /// The file or folder that was searched.
        file: String,
        /// The names of the missing tensors, in diffusers' spelling.
        tensors: Vec<String>,
    },
    /// A field of a model's config.json is missing, or asks for something unsupported.
    #[error("{}", Printable(format_args!("config field \"{field}\": expected {expected}, found {found}")))]
    Config {
        /// The field's name in diffusers' config.json.
        field: String,
        /// The supported values.
        expected: String,
        /// The value in the file.
        found: String,
    },
    /// The caller's latents, image or options do not fit the model.
    #[error("{}", Printable(format_args!("{what}: expected {expected}, found {found}")))]
    Input {
        /// The name of the argument or flag.
        what: String,
        /// The accepted values.
        expected: String,
        /// The value that the caller passed.
        found: String,
    },
    /// No plan for this size stays within the memory budget.
    #[error(
        "a memory budget of {budget} is too small for {image}: the smallest budget found is {}MiB, which takes {} on a device of this kind",
        .smallest.0.div_ceil(1 << 20),
        duration(*.seconds)
    )]
    Budget {
        /// The budget that the caller asked for, bytes.
        budget: Bytes,
        /// The size of the image, pixels.
        image: Size,
        /// The smallest budget that the search found, bytes: the peak of a complete plan, all GPU
        /// memory included. A smaller plan may exist; the search proves nothing about that.
        smallest: Bytes,
        /// The predicted time of the job with that budget, seconds, by
        /// [`crate::plan::Plan::predicted_seconds`].
        seconds: f64,
    },
    /// A step, tensor or buffer exceeds a limit of the device or of the plan.
    #[error("{what} needs {}, but the limit is {}", beside(*.needed, *.limit), beside(*.limit, *.needed))]
    TooLarge {
        /// The name of the step, tensor or buffer.
        what: String,
        /// The size that it needs, bytes.
        needed: Bytes,
        /// The largest size allowed, bytes.
        limit: Bytes,
    },
    /// The result has values that are not finite: the latents or the weights exceed the range of
    /// the precision.
    #[error(
        "the result is not finite, first at column {column}, row {row}: use f32 if this was f16, or check the range of the input"
    )]
    NotFinite {
        /// The column of the first such pixel.
        column: usize,
        /// The row of the first such pixel.
        row: usize,
    },
    /// The host has too little memory for the data that a plan keeps there.
    #[error("the host lacks {needed} of memory for {what}")]
    HostMemory {
        /// The data that needs the memory.
        what: String,
        /// The memory that the host lacks, bytes.
        needed: Bytes,
    },
    /// The graphics device failed, or there is none.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// Reading or writing a file failed.
    #[error("{}", Printable(format_args!("{path}: {source}")))]
    Io {
        /// The path of the file.
        path: String,
        /// The reason that the operating system gives.
        source: std::io::Error,
    },
    /// The caller cancelled the work.
    #[error("cancelled")]
    Cancelled,
}

impl Error {
    /// Makes an [`Error::Input`] about the argument or flag `what`.
    pub fn input(what: impl Into<String>, expected: impl Into<String>, found: impl Into<String>) -> Self {
        Self::Input { what: what.into(), expected: expected.into(), found: found.into() }
    }

    /// Changes the name of the argument or flag in an [`Error::Input`]. Other errors stay.
    #[must_use]
    pub fn renamed(self, name: impl FnOnce(String) -> String) -> Self {
        match self {
            Self::Input { what, expected, found } => Self::Input { what: name(what), expected, found },
            other => other,
        }
    }

    /// Makes an [`Error::Format`] about `file`.
    pub fn format(file: impl fmt::Display, problem: impl fmt::Display) -> Self {
        Self::Format { file: file.to_string(), problem: problem.to_string() }
    }

    /// Makes an [`Error::Io`] about the file at `path`.
    pub fn io(path: impl fmt::Display, source: std::io::Error) -> Self {
        Self::Io { path: path.to_string(), source }
    }
}

/// Returns `count` as text that differs from that of `other`, unless they are equal.
fn beside(count: Bytes, other: Bytes) -> String {
    let [text, other] = [count, other].map(|count| count.to_string());
    if text == other { format!("{} bytes", count.0) } else { text }
}

/// Returns the first of `names`, or an empty string.
fn first(names: &[String]) -> &str {
    names.first().map_or("", String::as_str)
}

/// A failure of the graphics device.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DeviceError {
    /// No adapter matched.
    #[error("no usable GPU adapter: {0}")]
    NoAdapter(String),
    /// The adapter lacks a limit or feature that every plan needs.
    #[error("adapter \"{adapter}\" is too small: expected {limit} of at least {needed}, found {found}")]
    TooSmall {
        /// The name of the adapter.
        adapter: String,
        /// The limit, by its name in WebGPU.
        limit: String,
        /// The least value that plans need.
        needed: u64,
        /// The value that the adapter has.
        found: u64,
    },
    /// The adapter could not create a device.
    #[error("adapter \"{adapter}\" could not create a device: {reason}")]
    Refused {
        /// The name of the adapter.
        adapter: String,
        /// The reason that the driver gives.
        reason: String,
    },
    /// An allocation failed, although the plan fits the device's stated limits.
    #[error("out of device memory while {doing}: {reason}")]
    OutOfMemory {
        /// The phase or step that was running.
        doing: String,
        /// The reason that the driver gives.
        reason: String,
    },
    /// The device disappeared: a driver reset, a watchdog, or an unplugged GPU.
    #[error("the GPU device was lost while {doing}: {reason}")]
    Lost {
        /// The phase or step that was running.
        doing: String,
        /// The reason that the driver gives.
        reason: String,
    },
    /// The driver rejected a command, or failed to run it. This is a bug in this crate or in the
    /// driver.
    #[error("the device failed while {doing}: {reason}")]
    Failed {
        /// The phase or step that was running.
        doing: String,
        /// The reason that the driver gives.
        reason: String,
    },
}

/// Formats a duration for a message.
fn duration(seconds: f64) -> String {
    if seconds < 0.05 { "less than 0.1 s".to_owned() } else { format!("about {seconds:.1} s") }
}

#[cfg(test)]
mod tests {
    use super::{Bytes, Error};

    #[test]
    fn what_is_too_large_looks_larger_than_its_limit() {
        let error =
            |needed| Error::TooLarge { what: "a chunk".to_owned(), needed: Bytes(needed), limit: Bytes(1 << 27) };
        assert_eq!(error(1 << 28).to_string(), "a chunk needs 256.0 MiB, but the limit is 128.0 MiB");
        let alike = "a chunk needs 134217744 bytes, but the limit is 134217728 bytes";
        assert_eq!(error((1 << 27) + 16).to_string(), alike);
    }
}
