//! Conversion of the crate's errors to the exceptions of `wgvae.errors`, with their fields.

use pyo3::IntoPyObjectExt as _;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use wgvae::Error;
use wgvae::device::DeviceError;

/// Name and value of a field.
type Field = (&'static str, Py<PyAny>);

/// The reason why a call ended early.
#[derive(Debug)]
pub(crate) enum Stop {
    /// An error of the crate.
    Wgvae(Error),
    /// An exception of Python, from a signal handler or a callback.
    Python(PyErr),
}

impl From<Error> for Stop {
    fn from(error: Error) -> Self {
        Self::Wgvae(error)
    }
}

impl From<PyErr> for Stop {
    fn from(error: PyErr) -> Self {
        Self::Python(error)
    }
}

impl Stop {
    /// Returns the exception to raise.
    pub(crate) fn into_exception(self, py: Python<'_>) -> PyErr {
        match self {
            Self::Wgvae(error) => exception(py, error),
            Self::Python(error) => error,
        }
    }
}

/// Makes the exception for an argument.
pub(crate) fn input(py: Python<'_>, what: &str, expected: &str, found: &str) -> PyErr {
    exception(py, Error::input(what, expected, found))
}

/// Makes the exception for a bug in this package.
pub(crate) fn internal(py: Python<'_>, message: &str) -> PyErr {
    raise(py, "InternalError", message, Ok(Vec::new()))
}

/// Makes the exception for `error`.
pub(crate) fn exception(py: Python<'_>, error: Error) -> PyErr {
    let message = error.to_string();
    let (class, fields) = described(py, error);
    raise(py, class, &message, fields)
}

fn raise(py: Python<'_>, class: &str, message: &str, fields: PyResult<Vec<Field>>) -> PyErr {
    let make = || -> PyResult<PyErr> {
        let keywords = PyDict::new(py);
        for (name, value) in fields? {
            keywords.set_item(name, value)?;
        }
        let class = py.import("wgvae.errors")?.getattr(class)?;
        Ok(PyErr::from_value(class.call((message,), Some(&keywords))?))
    };
    make().unwrap_or_else(|error| error)
}

/// Builds the class name and the fields of an exception, with values of Python.
macro_rules! fields {
    ($py:ident, $class:literal, $($name:ident),*) => {
        ($class, (|| Ok(vec![$((stringify!($name), $name.into_py_any($py)?)),*]))())
    };
}

/// Returns the class and the fields for `error`.
fn described(py: Python<'_>, error: Error) -> (&'static str, PyResult<Vec<Field>>) {
    match error {
        Error::Format { file, problem } => fields!(py, "FormatError", file, problem),
        Error::Tensor { tensor, expected, found } => fields!(py, "TensorError", tensor, expected, found),
        Error::MissingTensors { file, tensors } => fields!(py, "MissingTensorsError", file, tensors),
        Error::Config { field, expected, found } => fields!(py, "ConfigError", field, expected, found),
        Error::Input { what, expected, found } => fields!(py, "InputError", what, expected, found),
        Error::Budget { budget, image, smallest, seconds } => {
            let (budget, smallest, width, height) = (budget.0, smallest.0, image.width, image.height);
            fields!(py, "BudgetError", budget, smallest, seconds, width, height)
        }
        Error::TooLarge { what, needed, limit } => {
            let (needed, limit) = (needed.0, limit.0);
            fields!(py, "TooLargeError", what, needed, limit)
        }
        Error::NotFinite { column, row } => fields!(py, "NotFiniteError", column, row),
        Error::HostMemory { what, needed } => {
            let needed = needed.0;
            fields!(py, "HostMemoryError", what, needed)
        }
        Error::Device(error) => device(py, error),
        Error::Io { path, source } => {
            let (filename, errno, strerror) = (path, source.raw_os_error(), source.to_string());
            fields!(py, "FileError", filename, errno, strerror)
        }
        Error::Cancelled => ("Cancelled", Ok(Vec::new())),
        _ => ("Error", Ok(Vec::new())),
    }
}

fn device(py: Python<'_>, error: DeviceError) -> (&'static str, PyResult<Vec<Field>>) {
    match error {
        DeviceError::NoAdapter(reason) => fields!(py, "NoAdapterError", reason),
        DeviceError::TooSmall { adapter, limit, needed, found } => {
            fields!(py, "AdapterTooSmallError", adapter, limit, needed, found)
        }
        DeviceError::Refused { adapter, reason } => fields!(py, "DeviceRefusedError", adapter, reason),
        DeviceError::OutOfMemory { doing, reason } => fields!(py, "DeviceMemoryError", doing, reason),
        DeviceError::Lost { doing, reason } => fields!(py, "DeviceLostError", doing, reason),
        DeviceError::Failed { doing, reason } => fields!(py, "DeviceFailedError", doing, reason),
        _ => ("DeviceError", Ok(Vec::new())),
    }
}
