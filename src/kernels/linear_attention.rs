//! Linear attention: sums over runs of pixels, their sum over all runs, and its use by each pixel.
//! Shaders: `linear_attention_{sums,finish,apply}.wgsl`.

use crate::kernels::{Launch, Value, kernel, line, spread};
use crate::tensor::Storage;

/// Successive pixels of an invocation of `linear_attention_apply`.
const PIXELS: u32 = 4;

/// Returns the elements of the sums of `heads` heads of `head4` * 4 channels: each channel of the
/// keys with all of the values, then the keys.
pub fn elements(heads: u32, head4: u32) -> u32 {
    heads * (head4 * 4 + 1) * head4
}

kernel! {
    /// Interface of `linear_attention_sums`.
    SUMS = "linear_attention_sums"(x: Read, sums: ReadWrite);
    SumsParams { pixels: u32, run: u32, channels4: u32, sums_offset: u32 }
}

/// Launches `linear_attention_sums` with a workgroup for each head and run.
pub fn sums(storage: Storage, head4: u32, params: SumsParams) -> Launch {
    let heads = params.channels4 / (3 * head4);
    let values = vec![("HEAD4", Value::U32(head4)), ("Stored", Value::Type(storage.wgsl_type()))];
    let workgroups = [heads, params.pixels.div_ceil(params.run), 1];
    let macs = u64::from(params.pixels) * u64::from(heads) * u64::from(head4 * head4) * 16;
    Launch { macs, ..SUMS.launch(values, &params, workgroups) }
}

kernel! {
    /// Interface of `linear_attention_finish`.
    FINISH = "linear_attention_finish"(sums: Read, table: ReadWrite);
    FinishParams { runs: u32, elements: u32 }
}

/// Launches `linear_attention_finish`.
pub fn finish(params: FinishParams) -> Launch {
    FINISH.launch(Vec::new(), &params, line(&[params.elements]))
}

kernel! {
    /// Interface of `linear_attention_apply`.
    APPLY = "linear_attention_apply"(x: Read, table: Read, y: ReadWrite);
    ApplyParams {
        pixels: u32, heads: u32, x_offset: u32, y_offset: u32, y_channels4: u32, eps: f32,
    }
}

/// Launches `linear_attention_apply`.
pub fn apply(storage: Storage, head4: u32, params: ApplyParams) -> Launch {
    let values = vec![
        ("HEAD4", Value::U32(head4)),
        ("PIXELS", Value::U32(PIXELS)),
        ("Stored", Value::Type(storage.wgsl_type())),
    ];
    let workgroups = spread(params.pixels.div_ceil(PIXELS) * params.heads * head4);
    let macs = u64::from(params.pixels) * u64::from(params.heads) * u64::from(head4 * head4) * 16;
    Launch { macs, ..APPLY.launch(values, &params, workgroups) }
}
