//! Choice of a picture's size before it is encoded, and of the crop.

use wgvae::{Error, Result, Size};

use super::Picture;

/// Method for a size with other proportions than the picture.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Fit {
    /// Scale until the picture covers the size, then crop the middle: diffusers'
    /// `resize_mode="crop"`.
    #[default]
    Cover,
    /// Scale until the picture lies within the size, which it need not fill: PIL's
    /// `ImageOps.contain`.
    Contain,
    /// Stretch: PIL's `Image.resize`.
    Stretch,
}

wgvae::named!(Fit, "fit": Cover = "cover", Contain = "contain", Stretch = "stretch");

/// Requested size of pictures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Resize {
    /// Requested size. Without it, each picture keeps its own.
    pub to: Option<Size>,
    /// Method of reaching that size.
    pub fit: Fit,
    /// True if a size that is no multiple of the model's factor is an error. Else it is lowered to
    /// the next smaller multiple.
    pub exact: bool,
}

/// Steps for one picture: scale to `scaled`, then crop the middle `size`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fitted {
    /// Extent of the whole scaled picture.
    pub scaled: Size,
    /// Extent of its middle, which is encoded.
    pub size: Size,
    /// Extent before it was lowered to multiples of the model's factor.
    pub wanted: Size,
}

impl Resize {
    /// Computes the steps for a picture of `size`, called `name` in errors. `factor` is the model's
    /// factor in pixels: sides must be multiples of it.
    ///
    /// A picture with other sides is not cropped. It is scaled to the next smaller multiples, as
    /// diffusers' `VaeImageProcessor` does.
    ///
    /// # Errors
    /// [`Error::Input`] if no pixel would be left, and with [`Self::exact`] if a side is no
    /// multiple.
    pub fn fit(&self, name: &str, size: Size, factor: u32) -> Result<Fitted> {
        let wanted = match (self.to, self.fit) {
            (None, _) => size,
            (Some(to), Fit::Contain) => contained(size, to),
            (Some(to), Fit::Cover | Fit::Stretch) => to,
        };
        let target = lowered(wanted, factor);
        if target.width == 0 || target.height == 0 || (self.exact && target != wanted) {
            return Err(Error::input(
                if self.to.is_some() { format!("--resize of {name}") } else { format!("size of {name}") },
                format!(
                    "{} {factor} pixels each way, as the model has",
                    if self.exact { "multiples of" } else { "at least" }
                ),
                wanted.to_string(),
            ));
        }
        let scaled = if self.to.is_some() && self.fit == Fit::Cover { covering(size, target) } else { target };
        Ok(Fitted { scaled, size: target, wanted })
    }
}

impl Fitted {
    /// Applies the steps to `picture`.
    pub fn apply(&self, picture: Picture) -> Picture {
        picture.resized(self.scaled).middle(self.size)
    }
}

/// Lowers both sides to multiples of `factor`.
fn lowered(size: Size, factor: u32) -> Size {
    Size { width: size.width - size.width % factor, height: size.height - size.height % factor }
}

/// Returns the smallest extent with the proportions of `size` that covers `target`, rounded as in
/// diffusers.
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

/// Returns the largest extent with the proportions of `size` within `target`, rounded as in PIL.
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
