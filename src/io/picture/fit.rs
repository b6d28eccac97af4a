//! Which size a picture gets before it is encoded, and what is cut off.

use super::Picture;
use crate::error::{Error, Result};
use crate::tensor::Size;

/// How a picture gets a size that has other proportions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Fit {
    /// Scaled until it covers the size, the middle of it: diffusers' `resize_mode="crop"`.
    #[default]
    Cover,
    /// Scaled until it lies within the size, which it then need not fill: PIL's `ImageOps.contain`.
    Contain,
    /// Stretched: PIL's `Image.resize`.
    Stretch,
}

/// Which size pictures are to have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Resize {
    /// The size asked for; without one, each picture's own.
    pub to: Option<Size>,
    /// How a picture gets there.
    pub fit: Fit,
    /// Whether a size that is no multiple of the model's factor is an error, instead of becoming
    /// the next smaller one that is.
    pub exact: bool,
}

/// What is done to a picture: scaled to `scaled`, of which the middle stays.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fitted {
    /// Extent of the whole picture, scaled.
    pub scaled: Size,
    /// Extent of its middle, which is what is encoded.
    pub size: Size,
    /// The extent that it would have had, were it not for the model's factor.
    pub wanted: Size,
}

impl Resize {
    /// What becomes of a picture of `size`, called `name`, for a model that takes sides that are
    /// multiples of `factor`, pixels.
    ///
    /// diffusers' `VaeImageProcessor` does not crop a picture whose sides are none: it scales it to
    /// the next smaller multiples, and so does this.
    ///
    /// # Errors
    /// [`Error::Input`] where no pixel would be left, and with [`Self::exact`] where a side is no
    /// multiple.
    pub fn fit(&self, name: &str, size: Size, factor: u32) -> Result<Fitted> {
        let wanted = match (self.to, self.fit) {
            (None, _) => size,
            (Some(to), Fit::Contain) => contained(size, to),
            (Some(to), Fit::Cover | Fit::Stretch) => to,
        };
        let target = lowered(wanted, factor);
        if target.width == 0 || target.height == 0 || (self.exact && target != wanted) {
            return Err(Error::Input {
                what: if self.to.is_some() { format!("--resize of {name}") } else { format!("size of {name}") },
                expected: format!(
                    "{} of {factor} pixels each way, as the model has",
                    if self.exact { "multiples" } else { "multiples, or at least one" }
                ),
                found: wanted.to_string(),
            });
        }
        let scaled = if self.to.is_some() && self.fit == Fit::Cover { covering(size, target) } else { target };
        Ok(Fitted { scaled, size: target, wanted })
    }
}

impl Fitted {
    /// Does it to `picture`.
    pub fn apply(&self, picture: Picture) -> Picture {
        picture.resized(self.scaled).middle(self.size)
    }
}

/// The next smaller multiples of `factor`.
fn lowered(size: Size, factor: u32) -> Size {
    Size { width: size.width - size.width % factor, height: size.height - size.height % factor }
}

/// The smallest extent with the proportions of `size` that covers `target`, rounded as diffusers
/// does.
fn covering(size: Size, target: Size) -> Size {
    let scaled = |side: u32, numerator: u32, denominator: u32| {
        let scaled = u64::from(side) * u64::from(numerator) / u64::from(denominator);
        u32::try_from(scaled).unwrap_or(u32::MAX)
    };
    if is_wider(target, size) {
        Size { width: target.width, height: scaled(size.height, target.width, size.width) }
    } else {
        Size { width: scaled(size.width, target.height, size.height), height: target.height }
    }
}

/// The largest extent with the proportions of `size` within `target`, rounded as PIL does.
fn contained(size: Size, target: Size) -> Size {
    let scaled = |side: u32, by: u32, of: u32| {
        let exact = f64::from(side) / f64::from(of) * f64::from(by);
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "no more than the target's side")]
        let rounded = exact.round_ties_even() as u32;
        rounded
    };
    if is_wider(size, target) {
        Size { width: target.width, height: scaled(size.height, target.width, size.width) }
    } else {
        Size { width: scaled(size.width, target.height, size.height), height: target.height }
    }
}

fn is_wider(left: Size, right: Size) -> bool {
    u64::from(left.width) * u64::from(right.height) > u64::from(right.width) * u64::from(left.height)
}
