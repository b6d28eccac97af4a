//! The kernels of streaming attention besides its products. Shaders: `attention_softmax.wgsl`,
//! `attention_finish.wgsl`.

use crate::kernels::{Access, Interface, Launch, Value, groups, kernel, params};
use crate::tensor::Storage;

params! {
    /// Parameters of `attention_softmax`.
    SoftmaxParams, SOFTMAX_PARAMS {
        keys: u32, row: u32, scale: f32, first: u32,
    }
}

/// Interface of `attention_softmax`.
pub const SOFTMAX: Interface = kernel!(
    "attention_softmax",
    &[
        ("scores", Access::Read),
        ("probabilities", Access::ReadWrite),
        ("state", Access::ReadWrite),
        ("row_factors", Access::ReadWrite),
    ],
    SOFTMAX_PARAMS
);

/// Launches `attention_softmax` for `queries` rows.
pub fn softmax(storage: Storage, queries: u32, params: SoftmaxParams) -> Launch {
    SOFTMAX.launch(vec![("Stored", Value::Type(storage.wgsl_type()))], &params, [queries, 1, 1])
}

params! {
    /// Parameters of `attention_finish`.
    FinishParams, FINISH_PARAMS {
        queries: u32, channels4: u32, y_offset: u32,
    }
}

/// Interface of `attention_finish`.
pub const FINISH: Interface = kernel!(
    "attention_finish",
    &[("accumulated", Access::Read), ("state", Access::Read), ("y", Access::ReadWrite)],
    FINISH_PARAMS
);

/// Launches `attention_finish`.
pub fn finish(storage: Storage, params: FinishParams) -> Launch {
    FINISH.launch(
        vec![("Stored", Value::Type(storage.wgsl_type()))],
        &params,
        [groups(u64::from(params.queries) * u64::from(params.channels4)), 1, 1],
    )
}
