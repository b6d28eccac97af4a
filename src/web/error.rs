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

/// Builds the code of an error, and its facts by name.
macro_rules! facts {
    ($code:literal $(, $name:ident)*) => { ($code, vec![$((stringify!($name), $name.into())),*]) };
}

/// Returns the code of an error, and its facts by name.
fn describe(error: &Error) -> (&'static str, Vec<(&'static str, JsValue)>) {
    match error {
        Error::Format { file, problem: reason } => facts!("format", file, reason),
        Error::Tensor { tensor, expected, found } => facts!("tensor", tensor, expected, found),
        Error::MissingTensors { file, tensors } => {
            let tensors: js_sys::Array = tensors.iter().map(JsValue::from).collect();
            facts!("missing-tensors", file, tensors)
        }
        Error::Config { field, expected, found } => facts!("config", field, expected, found),
        Error::Input { what, expected, found } => facts!("input", what, expected, found),
        Error::Budget { budget, smallest, seconds, .. } => {
            let (budget, smallest, seconds) = (number(budget.0), number(smallest.0), *seconds);
            facts!("budget", budget, smallest, seconds)
        }
        Error::TooLarge { needed, limit, .. } => {
            let (needed, limit) = (number(needed.0), number(limit.0));
            facts!("too-large", needed, limit)
        }
        Error::NotFinite { column, row } => {
            let (column, row) = (number(*column as u64), number(*row as u64));
            facts!("not-finite", column, row)
        }
        Error::HostMemory { needed, .. } => ("host-memory", vec![("needed", number(needed.0))]),
        Error::Device(error) => describe_device(error),
        Error::Io { path, source } => ("io", vec![("file", path.into()), ("reason", source.to_string().into())]),
        Error::Cancelled => ("cancelled", Vec::new()),
    }
}

fn describe_device(error: &DeviceError) -> (&'static str, Vec<(&'static str, JsValue)>) {
    match error {
        DeviceError::NoAdapter(reason) => facts!("no-adapter", reason),
        DeviceError::TooSmall { adapter, limit, needed, found } => {
            let (needed, found) = (number(*needed), number(*found));
            facts!("adapter-too-small", adapter, limit, needed, found)
        }
        DeviceError::Refused { adapter, reason } => facts!("device-refused", adapter, reason),
        DeviceError::OutOfMemory { doing, reason } => facts!("out-of-memory", doing, reason),
        DeviceError::Lost { doing, reason } => facts!("device-lost", doing, reason),
        DeviceError::Failed { doing, reason } => facts!("device-failed", doing, reason),
    }
}

#[expect(clippy::cast_precision_loss, reason = "JavaScript's numbers")]
fn number(value: u64) -> JsValue {
    (value as f64).into()
}
