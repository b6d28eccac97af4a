//! What can go wrong, sorted by whose problem it is. Messages name the thing, what was expected and
//! what was found.

use crate::printable::Printable;
use crate::tensor::{Bytes, Size};

/// Result of every fallible call of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// Why a call failed. Messages are lower case, without a final dot, and carry names and numbers.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file is not what its name or header says: truncated, corrupt, or of another format.
    #[error("{}", Printable(format_args!("{file}: {problem}")))]
    Format {
        /// The file or byte source.
        file: String,
        /// What is wrong with it, with the numbers.
        problem: String,
    },
    /// A tensor of a file has another shape, type or content than the model needs.
    #[error("{}", Printable(format_args!("tensor \"{tensor}\": expected {expected}, found {found}")))]
    Tensor {
        /// The tensor's name as written in the file.
        tensor: String,
        /// What the model needs.
        expected: String,
        /// What the file has.
        found: String,
    },
    /// The model needs tensors that its files do not hold.
    #[error("{}", Printable(format_args!("{file}: {} missing tensor(s), first \"{}\"", .tensors.len(), first(.tensors))))]
    MissingTensors {
        /// The file or folder searched.
        file: String,
        /// Names of the missing tensors, in diffusers' spelling.
        tensors: Vec<String>,
    },
    /// A field of a model's config.json is missing or asks for something unsupported.
    #[error("{}", Printable(format_args!("config field \"{field}\": expected {expected}, found {found}")))]
    Config {
        /// The field's name in diffusers' config.json.
        field: String,
        /// What is supported.
        expected: String,
        /// What the file says.
        found: String,
    },
    /// The caller's latents, image or options do not fit the model.
    #[error("{}", Printable(format_args!("{what}: expected {expected}, found {found}")))]
    Input {
        /// The argument or flag.
        what: String,
        /// What it must be.
        expected: String,
        /// What it is.
        found: String,
    },
    /// No plan for this size keeps the memory budget.
    #[error(
        "a memory budget of {budget} is too small for {image}: the smallest found that will do is {}MiB, which takes {} on a device of this kind",
        .smallest.0.div_ceil(1 << 20),
        duration(*.seconds)
    )]
    Budget {
        /// What was asked for.
        budget: Bytes,
        /// Size of the image, pixels.
        image: Size,
        /// The smallest budget that is accepted, all GPU memory included: the peak of a plan that
        /// was found. The search is no proof that no smaller plan exists.
        smallest: Bytes,
        /// What a decode would take with that budget, by [`crate::plan::Plan::predicted_seconds`].
        seconds: f64,
    },
    /// A piece of work does not fit the device or the limits it was planned for.
    #[error("{what} needs {needed}, but the limit is {limit}")]
    TooLarge {
        /// The step, tensor or buffer.
        what: String,
        /// Bytes it needs.
        needed: Bytes,
        /// Bytes there are.
        limit: Bytes,
    },
    /// The decoded image has values that are not finite: the latents or the weights outgrew the
    /// precision.
    #[error(
        "the result is not finite, first at column {column}, row {row}: try f32 if this was f16, else check the range of what goes in"
    )]
    NotFinite {
        /// Column of the first such pixel.
        column: usize,
        /// Row of the first such pixel.
        row: usize,
    },
    /// The host's memory cannot hold what a plan keeps there.
    #[error("the host has no {needed} of memory for {what}")]
    HostMemory {
        /// What is kept there.
        what: String,
        /// Bytes it needs.
        needed: Bytes,
    },
    /// The GPU, its driver or its absence.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// Reading or writing a file failed.
    #[error("{}", Printable(format_args!("{path}: {source}")))]
    Io {
        /// The path concerned.
        path: String,
        /// The operating system's reason.
        source: std::io::Error,
    },
    /// The caller cancelled the work.
    #[error("cancelled")]
    Cancelled,
}

/// Returns the first of `names`, or nothing.
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
    /// The adapter exists but lacks a limit or feature that every plan needs.
    #[error("adapter \"{adapter}\" is too small: {limit} is {found}, at least {needed} is needed")]
    TooSmall {
        /// The adapter's name.
        adapter: String,
        /// WebGPU's name of the limit.
        limit: String,
        /// What is needed.
        needed: u64,
        /// What the adapter has.
        found: u64,
    },
    /// The device refused to be created.
    #[error("adapter \"{adapter}\" gave no device: {reason}")]
    Refused {
        /// The adapter's name.
        adapter: String,
        /// The driver's reason.
        reason: String,
    },
    /// An allocation failed although the plan fits the device's stated limits.
    #[error("out of GPU memory while {doing}: {reason}")]
    OutOfMemory {
        /// The phase or step.
        doing: String,
        /// The driver's reason.
        reason: String,
    },
    /// The device disappeared: driver reset, watchdog, unplugged.
    #[error("the GPU device was lost while {doing}: {reason}")]
    Lost {
        /// The phase or step.
        doing: String,
        /// The driver's reason.
        reason: String,
    },
    /// The driver rejected or failed a command. A bug in this crate or in the driver.
    #[error("the GPU failed while {doing}: {reason}")]
    Failed {
        /// The phase or step.
        doing: String,
        /// The driver's reason.
        reason: String,
    },
}

/// How long something takes, for a message.
fn duration(seconds: f64) -> String {
    if seconds < 0.05 { "less than 0.1 s".to_owned() } else { format!("about {seconds:.1} s") }
}
