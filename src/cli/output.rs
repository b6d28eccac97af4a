//! What a decode writes: pictures or raw floats, by the ending of the file asked for.

use std::path::{Path, PathBuf};

use wgvae::internals::image_file::{self, ImageFormat, check_writable, encode_image, numbered};
use wgvae::internals::npy::write_npy;
use wgvae::internals::safetensors::write_safetensors;
use wgvae::{Decoded, HostTensor, Output, Pixels, Result, Size};

use super::input;

/// Name of the tensor in a .safetensors file of raw floats.
const TENSOR: &str = "image";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Format {
    Picture(ImageFormat),
    Npy,
    Safetensors,
}

/// The file or files of a decode, as far as they are encoded.
#[derive(Debug)]
pub(super) struct OutputFiles {
    path: PathBuf,
    format: Format,
    count: usize,
    pictures: Vec<(PathBuf, Vec<u8>)>,
    size: Option<Size>,
    raw: Vec<f32>,
}

impl OutputFiles {
    /// For `count` images at `path`.
    ///
    /// # Errors
    /// When the ending is unknown or a file could not be written there.
    pub(super) fn new(path: &Path, count: u32) -> Result<Self> {
        let ending = path.extension().unwrap_or_default().to_string_lossy().to_lowercase();
        let format = match (ending.as_str(), ImageFormat::from_path(path)) {
            ("npy", _) => Format::Npy,
            ("safetensors", _) => Format::Safetensors,
            (_, Ok(format)) => Format::Picture(format),
            (_, Err(_)) => {
                let found = if ending.is_empty() { "none".to_owned() } else { format!("\"{ending}\"") };
                return Err(input(
                    format!("ending of output file {}", path.display()),
                    "one of png, jpg, jpeg, webp, npy, safetensors",
                    found,
                ));
            }
        };
        let files = Self {
            path: path.to_owned(),
            format,
            count: count as usize,
            pictures: Vec::new(),
            size: None,
            raw: Vec::new(),
        };
        files.names().iter().try_for_each(|name| check_writable(name))?;
        Ok(files)
    }

    /// What the library has to deliver.
    pub(super) fn output(&self) -> Output {
        match self.format {
            Format::Picture(_) => Output::Rgba8,
            Format::Npy | Format::Safetensors => Output::Raw,
        }
    }

    /// The names of all files.
    pub(super) fn names(&self) -> Vec<PathBuf> {
        match self.format {
            Format::Picture(_) => (0..self.count).map(|index| numbered(&self.path, index, self.count)).collect(),
            Format::Npy | Format::Safetensors => vec![self.path.clone()],
        }
    }

    /// Fails if the format cannot hold an image of `size`. For use before the decode.
    pub(super) fn check_size(&self, size: Size) -> Result<()> {
        match self.format {
            Format::Picture(format) => format.check_size(&self.path, size),
            Format::Npy | Format::Safetensors => Ok(()),
        }
    }

    /// Takes the next image.
    pub(super) fn add(&mut self, image: Decoded) -> Result<()> {
        self.size = Some(image.size);
        match (self.format, image.pixels) {
            (Format::Picture(format), Pixels::Rgba8(data)) => {
                let pixels = image_file::Pixels { size: image.size, data: &data };
                let name = numbered(&self.path, self.pictures.len(), self.count);
                self.pictures.push((name, encode_image(format, &pixels)?));
            }
            (Format::Npy | Format::Safetensors, Pixels::Raw(data)) => self.raw.extend_from_slice(&data),
            (Format::Picture(_), Pixels::Raw(_)) | (Format::Npy | Format::Safetensors, Pixels::Rgba8(_)) => {
                panic!("the decode delivered another kind of pixels than was asked for")
            }
        }
        Ok(())
    }

    /// Name and content of every file.
    pub(super) fn finish(self) -> Result<Vec<(PathBuf, Vec<u8>)>> {
        let Size { width, height } = self.size.unwrap_or(Size { width: 0, height: 0 });
        let tensor = || HostTensor { shape: vec![self.count, 3, height as usize, width as usize], data: self.raw };
        match self.format {
            Format::Picture(_) => Ok(self.pictures),
            Format::Npy => Ok(vec![(self.path, write_npy(&tensor()))]),
            Format::Safetensors => Ok(vec![(self.path, write_safetensors(&[(TENSOR, &tensor())])?)]),
        }
    }
}
