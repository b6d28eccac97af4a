//! Pixels beyond the image, in several kernels. Part: `parts/border.wgsl`.

use crate::kernels::Value;
use crate::model::graph::Border;

/// Returns the constant `BEYOND` of a kernel.
pub(super) fn value(border: Border) -> (&'static str, Value) {
    let kind = match border {
        Border::Around | Border::After => 0,
        Border::Mirror => 1,
        Border::Copies => 2,
        Border::Opposite => 3,
    };
    ("BEYOND", Value::U32(kind))
}
