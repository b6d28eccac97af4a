//! Plans of decodes in tiles.

use super::options::DecodeOptions;
use crate::error::{Error, Result};
use crate::model::config::AutoencoderConfig;
use crate::plan::{Output, Plan};
use crate::tensor::{Bytes, Size};
use crate::tiling::{Grid, Tiling};

/// The plans of a decode in tiles, one for each size of tile. Only one of them is prepared at a
/// time.
#[derive(Debug, Clone, PartialEq)]
pub struct TilePlans {
    /// Each plan with its number of tiles. Never empty.
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

    /// Makes the plans of a decode that is not in tiles.
    pub(super) fn whole(plan: Plan) -> Self {
        Self { plans: vec![(plan, 1)] }
    }

    /// Returns each plan and the number of tiles that are decoded with it.
    pub fn plans(&self) -> &[(Plan, usize)] {
        &self.plans
    }

    /// Returns the number of tiles.
    pub fn count(&self) -> usize {
        self.plans.iter().map(|(_, count)| count).sum()
    }

    /// Returns the peak of GPU memory of the whole decode, weights included.
    pub fn peak(&self) -> Bytes {
        self.plans.iter().map(|(plan, _)| plan.memory.peak()).max().unwrap_or_default()
    }

    /// Returns the multiply-adds of all tiles.
    pub fn macs(&self) -> u64 {
        self.plans.iter().map(|(plan, count)| plan.macs() * *count as u64).sum()
    }

    /// Returns the bytes that all tiles move between host and device because of the budget.
    pub fn transferred(&self) -> Bytes {
        Bytes(self.plans.iter().map(|(plan, count)| plan.transferred().0 * *count as u64).sum())
    }

    /// Returns the predicted time of the whole decode on a device of this kind, seconds.
    #[expect(clippy::cast_precision_loss, reason = "as many tiles as an image has")]
    pub fn predicted_seconds(&self) -> f64 {
        self.plans.iter().map(|(plan, count)| plan.predicted_seconds() * *count as f64).sum()
    }

    /// Returns the plan that takes the most memory.
    pub(crate) fn into_largest(self) -> Plan {
        let largest = self.plans.into_iter().map(|(plan, _)| plan).max_by_key(|plan| plan.memory.peak());
        largest.expect("an image has at least one tile")
    }
}

/// Chooses between the errors of several plans that have to stay within one budget: the error of
/// the plan that needs the most memory.
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

/// Returns an error if tiles have more sizes than are worth a plan each.
pub(super) fn check_sizes(grid: &Grid) -> Result<()> {
    // An overlap of up to half a tile leaves four sizes, seven eighths at most 81, and all but one
    // latent as many as there are tiles.
    const MOST_SIZES: usize = 100;
    let sizes = grid.sizes().len();
    if sizes <= MOST_SIZES {
        return Ok(());
    }
    Err(Error::input(
        "tile overlap",
        format!("an overlap that gives tiles of at most {MOST_SIZES} sizes, such as seven eighths of a tile"),
        format!("{} latents of {}, {sizes} sizes", grid.blend().overlap(), grid.blend().tile()),
    ))
}

/// Returns an error for tiles of latents in patches: other tools cut the VAE's own latents instead.
pub(super) fn check_patch(config: &AutoencoderConfig, unscaled: bool) -> Result<()> {
    if config.patch == 1 || unscaled {
        return Ok(());
    }
    Err(needs_own(config))
}

/// Makes the error for latents in patches, where the VAE's own latents are needed.
pub(super) fn needs_own(config: &AutoencoderConfig) -> Error {
    Error::input(
        "tiling",
        "the VAE's own latents (unscaled), which other tools cut into tiles",
        format!("latents with patches of {0}x{0}", config.patch),
    )
}

/// Returns the options of one tile's decode. Tiles are blended as floats, before any clamp.
pub(super) fn tile_options(options: &DecodeOptions) -> DecodeOptions {
    DecodeOptions { output: Output::Tile, tiling: Tiling::Exact, ..*options }
}
