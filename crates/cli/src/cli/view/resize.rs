//! Resizing of RGBA pixels for the terminal.

use wgvae::Size;
use wgvae::preview::Preview;
use wgvae_media::picture::{Levels, Picture};

/// Returns the RGBA pixels of `picture` in `size`.
pub(super) fn resized(picture: &Preview, size: Size) -> Vec<u8> {
    let picture = Picture { size: picture.size, levels: Levels::Eight(picture.pixels.clone()) };
    match picture.resized(size).levels {
        Levels::Eight(levels) => levels,
        Levels::Sixteen(levels) => levels.into_iter().map(|level| level.to_be_bytes()[0]).collect(),
    }
}
