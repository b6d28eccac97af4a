//! Activation functions of several kernels. Part: `parts/activation.wgsl`.

use crate::kernels::Value;
use crate::model::graph::Activation;

/// Returns the constant `ACTIVATION` of a kernel.
pub fn value(activation: Option<Activation>) -> (&'static str, Value) {
    let number = match activation {
        None => 0,
        Some(Activation::Silu) => 1,
        Some(Activation::Relu) => 2,
    };
    ("ACTIVATION", Value::U32(number))
}
