//! The kernels of streaming attention besides its products. Shaders: `attention_softmax.wgsl`,
//! `attention_finish.wgsl`.

use crate::kernels::{Launch, Value, kernel, line};
use crate::tensor::Storage;

kernel! {
    /// Interface of `attention_softmax`.
    SOFTMAX = "attention_softmax"(scores: Read, probabilities: ReadWrite, state: ReadWrite, row_factors: ReadWrite);
    SoftmaxParams { keys: u32, row: u32, scale: f32, first: u32 }
}

/// Launches `attention_softmax` for `queries` rows.
pub fn softmax(storage: Storage, queries: u32, params: SoftmaxParams) -> Launch {
    SOFTMAX.launch(vec![("Stored", Value::Type(storage.wgsl_type()))], &params, [queries, 1, 1])
}

kernel! {
    /// Interface of `attention_finish`.
    FINISH = "attention_finish"(accumulated: Read, state: Read, y: ReadWrite);
    FinishParams { queries: u32, channels4: u32, y_offset: u32 }
}

/// Launches `attention_finish`.
pub fn finish(storage: Storage, params: FinishParams) -> Launch {
    FINISH.launch(
        vec![("Stored", Value::Type(storage.wgsl_type()))],
        &params,
        line(&[params.queries, params.channels4]),
    )
}
