//! Escape sequences that hold a whole picture, for terminals that draw pixels.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use icy_sixel::SixelImage;
use wgvae::preview::Preview;
use wgvae::{Error, Result, Size};
use wgvae_media::image_file::{PngPixels, encode_png};

use super::resize::resized;

/// Most bytes of base64 in one sequence of kitty's protocol.
const KITTY_CHUNK: usize = 4096;

/// Pixels of a column in the sixel protocol, whose pictures have a size in pixels. Few terminals
/// have narrower columns.
const SIXEL_COLUMN: u32 = 8;

/// Returns `picture` on `columns` columns, in kitty's graphics protocol. The terminal sends no
/// answer.
pub(super) fn kitty(picture: &Preview, columns: u32) -> Result<String> {
    let data = png(picture)?;
    let chunks: Vec<&str> =
        (0..data.len()).step_by(KITTY_CHUNK).map(|at| &data[at..data.len().min(at + KITTY_CHUNK)]).collect();
    let mut text = String::new();
    for (index, chunk) in chunks.iter().enumerate() {
        let first = if index == 0 { format!("a=T,f=100,q=2,c={columns},") } else { String::new() };
        let more = u8::from(index + 1 < chunks.len());
        text.push_str(&format!("\x1b_G{first}m={more};{chunk}\x1b\\"));
    }
    Ok(text + "\n")
}

/// Returns `picture` on `columns` columns, in iTerm2's protocol for inline images.
pub(super) fn iterm(picture: &Preview, columns: u32) -> Result<String> {
    let data = png(picture)?;
    Ok(format!("\x1b]1337;File=inline=1;width={columns};height=auto;preserveAspectRatio=1:{data}\x07\n"))
}

/// Returns `picture` in the room of `size` half blocks, in the sixel protocol.
///
/// # Errors
/// [`Error::Input`] for a picture that the protocol cannot hold.
pub(super) fn sixel(picture: &Preview, size: Size) -> Result<String> {
    let size = Size { width: size.width * SIXEL_COLUMN, height: size.height * SIXEL_COLUMN };
    let image = SixelImage::from_rgba(resized(picture, size), size.width as usize, size.height as usize);
    let unfit = |error: icy_sixel::SixelError| {
        Error::input("--protocol sixel", "a picture that the protocol can hold", error.to_string())
    };
    Ok(image.encode().map_err(unfit)? + "\n")
}

/// Returns `picture` as a PNG file in base64.
fn png(picture: &Preview) -> Result<String> {
    Ok(STANDARD.encode(encode_png(picture.size, PngPixels::Rgba8, &picture.pixels)?))
}
