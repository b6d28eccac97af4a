//! The kernels of streaming attention besides its products. Shaders: `attention_softmax.wgsl`,
//! `attention_finish.wgsl`.

use crate::kernels::{Access, Interface, Launch, Value, Variant, groups, params};
use crate::tensor::Storage;

params! {
    /// Parameters of `attention_softmax`.
    SoftmaxParams, SOFTMAX_PARAMS {
        /// Keys of this block.
        keys: u32,
        /// vec4 elements between two rows of scores and probabilities.
        row: u32,
        /// 1 / sqrt(head dimension).
        scale: f32,
        /// 1 for the first block of keys.
        first: u32,
    }
}

/// Interface of `attention_softmax`.
pub const SOFTMAX: Interface = Interface {
    file: "attention_softmax",
    bindings: &[
        ("scores", Access::Read),
        ("probabilities", Access::ReadWrite),
        ("state", Access::ReadWrite),
        ("row_factors", Access::ReadWrite),
    ],
    params: SOFTMAX_PARAMS,
};

/// Launches `attention_softmax` for `queries` rows.
pub fn softmax(storage: Storage, queries: u32, params: SoftmaxParams) -> Launch {
    Launch {
        variant: Variant { file: "attention_softmax", values: vec![("Stored", Value::Type(storage.wgsl_type()))] },
        workgroups: [queries, 1, 1],
        params: bytemuck::bytes_of(&params).to_vec(),
        macs: 0,
    }
}

params! {
    /// Parameters of `attention_finish`.
    FinishParams, FINISH_PARAMS {
        /// Queries of this block.
        queries: u32,
        /// Channels / 4.
        channels4: u32,
        /// First element of the block in y.
        y_offset: u32,
    }
}

/// Interface of `attention_finish`.
pub const FINISH: Interface = Interface {
    file: "attention_finish",
    bindings: &[("accumulated", Access::Read), ("state", Access::Read), ("y", Access::ReadWrite)],
    params: FINISH_PARAMS,
};

/// Launches `attention_finish`.
pub fn finish(storage: Storage, params: FinishParams) -> Launch {
    Launch {
        variant: Variant { file: "attention_finish", values: vec![("Stored", Value::Type(storage.wgsl_type()))] },
        workgroups: [groups(u64::from(params.queries) * u64::from(params.channels4)), 1, 1],
        params: bytemuck::bytes_of(&params).to_vec(),
        macs: 0,
    }
}
