//! Target for encoded pictures: written pictures can be read again and are equal. Pictures from
//! elsewhere are not read here.

use arbitrary::{Result, Unstructured};
use wgvae::Size;
use wgvae_media::image_file::{ImageFormat, Pixels, encode_image};

/// A picture as a caller may pass it: its size need not match its pixels.
struct Picture<'a> {
    format: u8,
    width: u32,
    height: u32,
    /// True if the size is made to fit.
    fits: bool,
    alpha: bool,
    data: &'a [u8],
}

impl<'a> Picture<'a> {
    fn new(mut input: Unstructured<'a>) -> Result<Self> {
        Ok(Self {
            format: input.arbitrary()?,
            width: input.arbitrary()?,
            height: input.arbitrary()?,
            fits: input.arbitrary()?,
            alpha: input.arbitrary()?,
            data: input.take_rest(),
        })
    }
}

/// Fuzzes the encoders of all formats with any bytes.
pub(super) fn image_file(bytes: &[u8]) {
    let Ok(picture) = Picture::new(Unstructured::new(bytes)) else { return };
    let format = [ImageFormat::Png, ImageFormat::Jpeg, ImageFormat::WebP][usize::from(picture.format % 3)];
    let (size, data) = if picture.fits { fitted(&picture) } else { (size(&picture), picture.data) };
    let Ok(file) = encode_image(format, &Pixels { size, data }) else {
        assert!(!picture.fits || data.is_empty(), "a {size} picture of {} bytes is refused as {format:?}", data.len());
        return;
    };
    let read = image::load_from_memory(&file).expect("a picture that was written");
    assert_eq!((read.width(), read.height()), (size.width, size.height));
    if format != ImageFormat::Jpeg {
        let pixels = u64::from(size.width) * u64::from(size.height);
        let same =
            if data.len() as u64 == 4 * pixels { read.into_rgba8().into_raw() } else { read.into_rgb8().into_raw() };
        assert_eq!(same, data);
    }
}

fn size(picture: &Picture<'_>) -> Size {
    Size { width: picture.width, height: picture.height }
}

/// Returns a size that some of the pixels fill, and these pixels.
fn fitted<'a>(picture: &Picture<'a>) -> (Size, &'a [u8]) {
    let channels = if picture.alpha { 4 } else { 3 };
    let pixels = u32::try_from(picture.data.len() / channels).unwrap_or(0);
    let width = 1 + picture.width % pixels.clamp(1, 1000);
    let height = pixels / width;
    (Size { width, height }, &picture.data[..width as usize * height as usize * channels])
}
