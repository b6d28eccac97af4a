//! Choice of the family whose linear map shows latents.

use wgvae::config::Family;
use wgvae::files::ByteSource;
use wgvae::internals::safetensors::read_header;
use wgvae::preview::families;
use wgvae::{Error, Result};

use super::frame::Frame;

/// A family, and how it was chosen.
pub(super) struct Chosen {
    pub(super) name: String,
    /// Text that follows the name: empty for the user's own choice.
    pub(super) why: String,
}

/// Chooses the family `given`, or else the one that the metadata of `source` names, or else the
/// first that fits `frame`.
///
/// # Errors
/// [`Error::Input`] if no family with a linear map fits.
pub(super) async fn family_of(source: &dyn ByteSource, given: Option<&str>, frame: &Frame) -> Result<Chosen> {
    if let Some(name) = given {
        return Ok(Chosen { name: name.to_owned(), why: String::new() });
    }
    match stored(source).await {
        Some(name) if families().any(|known| known == name) => {
            Ok(Chosen { name, why: " (as the file says)".to_owned() })
        }
        Some(name) => Err(unmapped(format!("{name}, by the metadata of {}", source.name()))),
        None => guessed(source, frame),
    }
}

fn unmapped(found: String) -> Error {
    Error::input("--family", "a family with a linear map, or a model with --model", found)
}

/// Returns the family in the metadata of a .safetensors file.
async fn stored(source: &dyn ByteSource) -> Option<String> {
    read_header(source).await.ok()?.metadata.get("family").cloned()
}

/// Returns the first family with the channels of `frame`. An image may be of a family for video,
/// which come last, but a clip is of no other.
fn guessed(source: &dyn ByteSource, frame: &Frame) -> Result<Chosen> {
    let channels = frame.latents.channels();
    let known: Result<Vec<&Family>> = families().map(Family::find).collect();
    let fits = known?.into_iter().filter(|family| {
        let config = family.config();
        config.channels(frame.latents.space(&config)) == channels
    });
    let (likely, unlikely): (Vec<&Family>, _) = fits.partition(|family| family.config().has_time() == frame.is_of_clip);
    let fitting = if frame.is_of_clip { likely } else { [likely, unlikely].concat() };
    let Some(first) = fitting.first() else {
        return Err(unmapped(format!("none, and latents of {channels} channels in {}", source.name())));
    };
    // One line of text, so that the picture still fits the terminal.
    let others = if fitting.len() > 1 { ", --family or --model names another" } else { "" };
    Ok(Chosen { name: first.name.to_owned(), why: format!(" (guessed from {channels} channels{others})") })
}
