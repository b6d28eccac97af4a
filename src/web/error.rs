//! Errors for JavaScript: an `Error` with a `code`, and with the numbers of its message as
//! properties.

use js_sys::Reflect;
use wasm_bindgen::prelude::*;

use crate::error::{DeviceError, Error};

/// The value that a failed call throws.
#[derive(Debug)]
pub struct Failure(JsValue);

impl Failure {
    /// Passes a value that the caller's own function threw back to the caller, unchanged.
    pub(super) fn passed_on(value: JsValue) -> Self {
        Self(value)
    }
}

impl From<Failure> for JsValue {
    fn from(failure: Failure) -> Self {
        failure.0
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let thrown: JsValue = js_sys::Error::new(&error.to_string()).into();
        let (code, facts) = describe(&error);
        // Setting a property of a new object cannot fail.
        let _ = Reflect::set(&thrown, &"code".into(), &code.into());
        for (name, value) in facts {
            let _ = Reflect::set(&thrown, &name.into(), &value);
        }
        Self(thrown)
    }
}

/// Returns the code of an error, and its facts by name.
fn describe(error: &Error) -> (&'static str, Vec<(&'static str, JsValue)>) {
    match error {
        Error::Format { file, problem } => ("format", vec![("file", file.into()), ("reason", problem.into())]),
        Error::Tensor { tensor, expected, found } => {
            ("tensor", vec![("tensor", tensor.into()), ("expected", expected.into()), ("found", found.into())])
        }
        Error::MissingTensors { file, tensors } => {
            let names: js_sys::Array = tensors.iter().map(JsValue::from).collect();
            ("missing-tensors", vec![("file", file.into()), ("tensors", names.into())])
        }
        Error::Config { field, expected, found } => {
            ("config", vec![("field", field.into()), ("expected", expected.into()), ("found", found.into())])
        }
        Error::Input { what, expected, found } => {
            ("input", vec![("what", what.into()), ("expected", expected.into()), ("found", found.into())])
        }
        Error::Budget { budget, smallest, seconds, .. } => (
            "budget",
            vec![("budget", number(budget.0)), ("smallest", number(smallest.0)), ("seconds", (*seconds).into())],
        ),
        Error::TooLarge { needed, limit, .. } => {
            ("too-large", vec![("needed", number(needed.0)), ("limit", number(limit.0))])
        }
        Error::NotFinite { column, row } => {
            ("not-finite", vec![("column", number(*column as u64)), ("row", number(*row as u64))])
        }
        Error::HostMemory { needed, .. } => ("host-memory", vec![("needed", number(needed.0))]),
        Error::Device(error) => describe_device(error),
        Error::Io { path, source } => ("io", vec![("file", path.into()), ("reason", source.to_string().into())]),
        Error::Cancelled => ("cancelled", Vec::new()),
    }
}

fn describe_device(error: &DeviceError) -> (&'static str, Vec<(&'static str, JsValue)>) {
    match error {
        DeviceError::NoAdapter(reason) => ("no-adapter", vec![("reason", reason.into())]),
        DeviceError::TooSmall { adapter, limit, needed, found } => (
            "adapter-too-small",
            vec![
                ("adapter", adapter.into()),
                ("limit", limit.into()),
                ("needed", number(*needed)),
                ("found", number(*found)),
            ],
        ),
        DeviceError::Refused { adapter, reason } => {
            ("device-refused", vec![("adapter", adapter.into()), ("reason", reason.into())])
        }
        DeviceError::OutOfMemory { doing, reason } => {
            ("out-of-memory", vec![("doing", doing.into()), ("reason", reason.into())])
        }
        DeviceError::Lost { doing, reason } => {
            ("device-lost", vec![("doing", doing.into()), ("reason", reason.into())])
        }
        DeviceError::Failed { doing, reason } => {
            ("device-failed", vec![("doing", doing.into()), ("reason", reason.into())])
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "JavaScript's numbers")]
fn number(value: u64) -> JsValue {
    (value as f64).into()
}
