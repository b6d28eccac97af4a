//! A picture as half blocks: each character shows two pixels, one above the other.

use wgvae::Size;
use wgvae::preview::Preview;

use super::resize::resized;

/// Greys of the checkerboard behind transparent pixels.
const CHECKERBOARD: [u8; 2] = [102, 153];

/// Levels of a channel in the 6x6x6 cube of terminals with 256 colours.
const CUBE: [u8; 6] = [0, 95, 135, 175, 215, 255];

/// Returns lines that show `picture` in `size` pixels, with 24-bit colours or else 256 colours.
pub(super) fn half_blocks(picture: &Preview, size: Size, true_color: bool) -> String {
    let colors = colors(&resized(picture, size), size.width as usize);
    let rows: Vec<&[[u8; 3]]> = colors.chunks(size.width as usize).collect();
    let mut text = String::new();
    for pair in rows.chunks(2) {
        for column in 0..size.width as usize {
            let upper = color("38", pair[0][column], true_color);
            match pair.get(1) {
                Some(lower) => text.push_str(&format!("\x1b[{upper};{}m▀", color("48", lower[column], true_color))),
                None => text.push_str(&format!("\x1b[{upper};49m▀")),
            }
        }
        text.push_str("\x1b[0m\n");
    }
    text
}

/// Returns the colours of RGBA pixels before a checkerboard. A row has `width` of them.
#[expect(clippy::cast_possible_truncation, reason = "at most 255")]
fn colors(pixels: &[u8], width: usize) -> Vec<[u8; 3]> {
    let before = |(at, pixel): (usize, &[u8; 4])| {
        let behind = u32::from(CHECKERBOARD[(at / width + at % width) % 2]);
        let [colors @ .., alpha] = pixel.map(u32::from);
        colors.map(|color| ((color * alpha + behind * (255 - alpha) + 127) / 255) as u8)
    };
    pixels.as_chunks::<4>().0.iter().enumerate().map(before).collect()
}

/// Returns the parameters that set a colour: of the text for "38", of its background for "48".
fn color(layer: &str, [red, green, blue]: [u8; 3], true_color: bool) -> String {
    if true_color {
        return format!("{layer};2;{red};{green};{blue}");
    }
    let [red, green, blue] = [red, green, blue].map(nearest);
    format!("{layer};5;{}", 16 + 36 * red + 6 * green + blue)
}

/// Returns the index of the cube's nearest level.
fn nearest(level: u8) -> usize {
    let near = (0..CUBE.len()).min_by_key(|&index| CUBE[index].abs_diff(level));
    near.unwrap_or_default()
}
