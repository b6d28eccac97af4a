//! Parts of running a plan that all devices have in common: control by the caller, the report of
//! times, the progress of the work before, and the count of memory.

mod adapter_report;
mod control;
mod ledger;
mod preparing;
mod presence;

pub use self::adapter_report::AdapterReport;
pub use self::control::{Control, OnProgress, Progress, RunReport, Submission};
pub use self::ledger::Ledger;
pub(crate) use self::preparing::Audience;
pub use self::preparing::{Listener, Preparing};
pub(crate) use self::presence::{HasCores, HasGpus};

use crate::error::Result;

wasm_not! {
    Send;
    /// A function that receives rows of the result: the first row and the one after the last, and
    /// their content. The content is `[rows, w, 4]` bytes or `[c, rows, w]` f32, `c` being 3 for an
    /// image.
    pub(crate) type ByteSink<'a> = dyn FnMut((u32, u32), &[u8]) -> Result<()> + 'a
}
