//! What decodes in tiles take.

use super::options::DecodeOptions;
use crate::error::{Error, Result};
use crate::model::config::AutoencoderConfig;
use crate::plan::{Output, Plan};
use crate::tensor::{Bytes, Size};
use crate::tiling::{Grid, Tiling};

/// What a decode in tiles takes: a plan for each size of tile. One is prepared at a time.
#[derive(Debug, Clone, PartialEq)]
pub struct TilePlans {
    /// Never empty. With the number of tiles of that size.
    plans: Vec<(Plan, usize)>,
}

impl TilePlans {
    /// Plans each size of tile with `plan`.
    pub(super) fn new(grid: &Grid, plan: impl Fn(Size) -> Result<Plan>) -> Result<Self> {
        check_sizes(grid)?;
        let (mut plans, mut refused) = (Vec::new(), None);
        for (size, count) in grid.sizes() {
            match plan(size) {
                Ok(plan) => plans.push((plan, count)),
                Err(error @ Error::Budget { .. }) => refused = Some(hardest(refused, error)),
                Err(error) => return Err(error),
            }
        }
        match refused {
            Some(error) => Err(error),
            None => Ok(Self { plans }),
        }
    }

    /// Of a decode that is not in tiles.
    pub(super) fn whole(plan: Plan) -> Self {
        Self { plans: vec![(plan, 1)] }
    }

    /// Each plan and the number of tiles that are decoded with it.
    pub fn plans(&self) -> &[(Plan, usize)] {
        &self.plans
    }

    /// Number of tiles.
    pub fn count(&self) -> usize {
        self.plans.iter().map(|(_, count)| count).sum()
    }

    /// GPU memory at the peak of the whole decode, weights included.
    pub fn peak(&self) -> Bytes {
        self.plans.iter().map(|(plan, _)| plan.memory.peak()).max().unwrap_or_default()
    }

    /// Multiply-adds of all tiles.
    pub fn macs(&self) -> u64 {
        self.plans.iter().map(|(plan, count)| plan.macs() * *count as u64).sum()
    }

    /// What budgets of all tiles move between host and device.
    pub fn transferred(&self) -> Bytes {
        Bytes(self.plans.iter().map(|(plan, count)| plan.transferred().0 * *count as u64).sum())
    }

    /// What the decode of all tiles should take on a device of this kind.
    #[expect(clippy::cast_precision_loss, reason = "as many tiles as an image has")]
    pub fn predicted_seconds(&self) -> f64 {
        self.plans.iter().map(|(plan, count)| plan.predicted_seconds() * *count as f64).sum()
    }

    /// The plan that takes the most memory.
    pub(crate) fn into_largest(self) -> Plan {
        let largest = self.plans.into_iter().map(|(plan, _)| plan).max_by_key(|plan| plan.memory.peak());
        largest.expect("an image has at least one tile")
    }
}

/// Chooses what a caller needs to hear, where several plans have to keep one budget and some do
/// not: the error of the one that needs the most.
pub(super) fn hardest(before: Option<Error>, error: Error) -> Error {
    match (before, &error) {
        (Some(before @ Error::Budget { smallest, .. }), Error::Budget { smallest: other, .. })
            if *other <= smallest =>
        {
            before
        }
        (None | Some(Error::Budget { .. }), _) => error,
        (Some(before), _) => before,
    }
}

/// Refuses tiles of more sizes than are worth a plan each.
pub(super) fn check_sizes(grid: &Grid) -> Result<()> {
    // Up to half a tile of overlap leaves four, seven eighths at most 81, and all but a latent as
    // many as there are tiles.
    const MOST_SIZES: usize = 100;
    let sizes = grid.sizes().len();
    if sizes <= MOST_SIZES {
        return Ok(());
    }
    Err(Error::Input {
        what: "tile overlap".to_owned(),
        expected: format!("one that leaves tiles of at most {MOST_SIZES} sizes, as seven eighths of a tile do"),
        found: format!("{} latents of {}, {sizes} sizes", grid.blend().overlap(), grid.blend().tile()),
    })
}

/// Refuses tiles of latents that are patches of the VAE's own: other tools cut the latter.
pub(super) fn check_patch(config: &AutoencoderConfig, unscaled: bool) -> Result<()> {
    if config.patch == 1 || unscaled {
        return Ok(());
    }
    Err(needs_own(config))
}

/// The error for latents with patches, where only the VAE's own will do.
pub(super) fn needs_own(config: &AutoencoderConfig) -> Error {
    Error::Input {
        what: "tiling".to_owned(),
        expected: "the VAE's own latents (unscaled), which other tools cut into tiles".to_owned(),
        found: format!("latents with patches of {0}x{0}", config.patch),
    }
}

/// The options that a tile is decoded with: tiles are blended as floats, before any clamp.
pub(super) fn tile_options(options: &DecodeOptions) -> DecodeOptions {
    DecodeOptions { output: Output::Tile, tiling: Tiling::Exact, ..*options }
}
