//! Images and frames to encode: their size, and the floats that an encoder takes.

use std::ops::Range;

use wgvae::{Error, HostTensor, Images, Size};
use wgvae_media::picture::{Fitted, Levels, Picture, Resize};

use crate::arrays::{Array, Values};
use crate::errors::Stop;
use crate::images::{axes, is_multiple, small};
use crate::watch::Watch;

/// Values beyond this are no picture's. A sharp filter, or a decode that is not clamped, leaves -1
/// to 1 by less.
const FAR: f32 = 2.0;

/// Treatment of levels whose sides are no multiple of the model's factor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Uneven {
    /// Scale down to the next smaller multiples, as for pictures on the command line.
    Scale,
    /// Crop the middle, as for frames on the command line.
    Crop,
}

/// Images, or frames of a clip, in an array of Python.
#[derive(Debug)]
pub(crate) struct Inputs<'a> {
    array: &'a Array,
    /// Number of images.
    pub(crate) count: usize,
    channels: usize,
    fitted: Fitted,
    /// True after a warning of values that no picture has.
    warned: bool,
}

impl<'a> Inputs<'a> {
    /// Takes images for a model of so many `channels`, whose sides are multiples of `step` pixels.
    /// As on the command line, floats of other sides are encoded as they are, and a warning tells
    /// of them and of all changes.
    ///
    /// # Errors
    /// [`Error::Input`] for other shapes, or levels of less than `step` pixels each way.
    pub(crate) fn new(array: &'a Array, channels: usize, step: u32, uneven: Uneven) -> Result<Self, Stop> {
        let [count, channels, height, width] = image_axes(array, channels)?;
        let (what, size) = (array.what, Size { width: small(width), height: small(height) });
        let mut fitted = Fitted { scaled: size, size, wanted: size };
        if array.has_levels() {
            fitted = Resize::default().fit(what, size, step)?;
            if uneven == Uneven::Crop {
                fitted.scaled = size;
            }
        }
        if !is_multiple(size, step) {
            let (taken, why) = (fitted.size, format!("{size} is no multiple of {step} pixels"));
            Watch::warn(&match uneven {
                _ if !array.has_levels() => format!("{what}: {why}: the network rounds edges that fill no latent"),
                Uneven::Scale => format!("{what}: scaled to {taken}, as {why}"),
                Uneven::Crop => format!("{what}: encoding the middle {taken}, as {why}"),
            })?;
        }
        Ok(Self { array, count, channels, fitted, warned: false })
    }

    /// Returns the size that is encoded.
    pub(crate) fn size(&self) -> Size {
        self.fitted.size
    }

    /// Reads the images of these indices, as the encoder takes them. Floats stay as they are, and
    /// levels are converted as in diffusers.
    ///
    /// # Errors
    /// For values that are not finite; exceptions that a filter of warnings raises.
    pub(crate) fn read(&mut self, indices: Range<usize>) -> Result<Images, Stop> {
        let (first, count, mut all) = (indices.start, indices.len(), Vec::new());
        for index in indices {
            let values = match self.array.image(index)? {
                Values::Floats(values) => values,
                Values::Levels(levels) => {
                    let picture = Picture { size: self.fitted.wanted, levels: Levels::Eight(levels) };
                    self.fitted.apply(picture).to_floats()
                }
            };
            if all.is_empty() {
                all = values;
            } else {
                all.extend(values);
            }
        }
        let Size { width, height } = self.size();
        let images =
            Images::new(HostTensor { shape: vec![count, self.channels, height as usize, width as usize], data: all })?;
        self.check_range(&images, first)?;
        Ok(images)
    }

    /// Warns once if `images`, from number `first` on, have values that no picture has.
    fn check_range(&mut self, images: &Images, first: usize) -> Result<(), Stop> {
        let (least, most) = images.range();
        if !self.warned && (least < -FAR || most > FAR) {
            self.warned = true;
            let (what, channels, count) = (self.array.what, self.channels, images.count() as usize);
            let which = if count == 1 { format!("{first}") } else { format!("{first}:{}", first + count) };
            Watch::warn(&format!(
                "{what}[{which}]: values range from {least} to {most}, but floats of pictures have -1 to 1 (uint8 [n, h, w, {channels}] has 0 to 255)"
            ))?;
        }
        Ok(())
    }
}

/// Returns the axes of `images` as `[n, c, h, w]`, for a model of so many `channels`.
///
/// # Errors
/// For other shapes.
fn image_axes(images: &Array, channels: usize) -> wgvae::Result<[usize; 4]> {
    let has_levels = images.has_levels();
    let expected = if has_levels { format!("[n, h, w, {channels}]") } else { format!("[n, {channels}, h, w]") };
    let [count, second, third, fourth] = axes("images", &expected, &images.shape)?;
    let (found, height, width) = if has_levels { (fourth, second, third) } else { (second, third, fourth) };
    // Images without opacity are opaque to a model that has it.
    if found != channels && found != 3 {
        let which = if has_levels { "uint8" } else { "floats" };
        return Err(Error::input("images", format!("a shape {expected} of {which}"), format!("{:?}", images.shape)));
    }
    Ok([count, found, height, width])
}
