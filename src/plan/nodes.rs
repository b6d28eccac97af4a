//! Makes the nodes of a schedule from fused stages.

use crate::error::{Error, Result};
use crate::limits::DeviceLimits;
use crate::plan::fused::Fused;
use crate::plan::node::Node;
use crate::plan::ops::{self, Sizing};
use crate::plan::{PlanOptions, bounds};

/// Returns the nodes of `fused`, one for each stage, in order.
///
/// # Errors
/// [`crate::Error::TooLarge`] if four rows of a tensor exceed a binding; [`crate::Error::Input`] if
/// there are more chunks or multiply-adds than `bounds` allows.
pub fn nodes(fused: &Fused, limits: &DeviceLimits, options: &PlanOptions) -> Result<Vec<Node>> {
    let mut sizing = Sizing::new(fused, limits, options);
    for stage in &fused.stages {
        let node = ops::node(&sizing, stage).map_err(|mut error| {
            if let Error::TooLarge { what, .. } = &mut error {
                *what = [what, stage.name()].join(" of ");
            }
            error
        })?;
        sizing.push(stage, node);
        // Checked early: the list of reads of a tensor in a million chunks would take more memory
        // than the plan.
        bounds::check(sizing.nodes())?;
    }
    Ok(sizing.into_nodes())
}
