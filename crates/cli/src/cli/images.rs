//! Input images of an encode: pictures and floats, brought to a size that the model takes. A note
//! on stderr tells of everything that is changed.

use std::path::{Path, PathBuf};

use clap::Args;
use serde::{Serialize, Serializer};
use wgvae::config::AutoencoderConfig;
use wgvae::files::{ByteSource, FileSource, MemorySource, read_images};
use wgvae::{Error, HostTensor, Images, Result, Size};
use wgvae_media::picture::{Fit, Fitted, PictureFile, Remark, Resize};

use super::stderr::note;
use super::{by_name, in_file, stdio};

/// Endings of pictures.
pub(super) const PICTURES: &[&str] = &["png", "jpg", "jpeg", "webp"];

/// Options that set the size of the encoded image.
#[derive(Debug, Args)]
pub(super) struct SizeArgs {
    /// Resize pictures to this size in pixels first, with PIL's Lanczos filter
    #[arg(long, value_name = "WxH", value_parser = super::parse_size)]
    resize: Option<Size>,
    /// Fit for other proportions: cover the size and crop the edges, lie within it, or be stretched
    #[arg(long, value_parser = by_name::<Fit>(), default_value = "cover", requires = "resize")]
    fit: Fit,
    /// Fail if a side is no multiple of the model's factor, instead of scaling pictures down to one
    /// as diffusers does
    #[arg(long)]
    exact_size: bool,
    /// Name of the tensor in .safetensors files of floats [default: image, or else images]
    #[arg(long, value_name = "NAME")]
    tensor: Option<String>,
}

/// File of images whose encoded size is known.
#[derive(Debug)]
pub(super) struct ImageFile {
    path: PathBuf,
    content: Content,
}

/// Images of an encode, for a report.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Source {
    /// File that holds them.
    #[serde(serialize_with = "lossy")]
    pub(super) file: PathBuf,
    /// Number of images in the file.
    pub(super) count: u32,
    /// Size of the encoded image, pixels.
    pub(super) size: Size,
}

/// Writes a path whose name may be no valid UTF-8.
fn lossy<P: AsRef<Path>, S: Serializer>(path: &P, to: S) -> std::result::Result<S::Ok, S::Error> {
    to.collect_str(&path.as_ref().display())
}

#[derive(Debug)]
enum Content {
    /// Picture of which only the header has been read.
    Picture {
        file: PictureFile,
        fitted: Fitted,
        keep_alpha: bool,
    },
    Floats(Images),
}

/// Images that a model takes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Taken {
    /// Number whose multiples are the sides in pixels.
    factor: u32,
    /// Number of channels: 4 for a model with opacity, else 3.
    channels: u32,
}

impl Taken {
    /// Returns the images that a model of `config` takes, with sides in multiples of `factor`.
    pub(super) fn by(config: &AutoencoderConfig, factor: u32) -> Self {
        Self { factor, channels: config.in_channels }
    }

    fn has_alpha(self) -> bool {
        self.channels == 4
    }
}

impl SizeArgs {
    /// Opens the file at `path` for a model that takes `taken`.
    ///
    /// # Errors
    /// For a file that is no image, sizes that the model does not take, and values that are not
    /// finite.
    pub(super) async fn open(&self, path: &Path, taken: Taken) -> Result<ImageFile> {
        let content = if let Some(bytes) = stdio::read_pipe(path)? {
            let name = if stdio::is_meant(path) { Path::new(stdio::STDIN) } else { path };
            if PictureFile::begins(&bytes) {
                self.picture(name, PictureFile::from_bytes(name, bytes)?, taken)?
            } else {
                let source = MemorySource::new(name.display().to_string(), bytes);
                Content::Floats(self.floats(name, &source, taken).await?)
            }
        } else if PictureFile::is_picture(path)? {
            self.picture(path, PictureFile::open(path)?, taken)?
        } else {
            check_ending(path)?;
            Content::Floats(self.floats(path, &FileSource::open(path)?, taken).await?)
        };
        Ok(ImageFile { path: path.to_owned(), content })
    }

    /// Fails for `--tensor` if none of the input `files` can be a .safetensors file.
    pub(super) fn check_tensor(&self, files: &[PathBuf]) -> Result<()> {
        let Some(name) = &self.tensor else { return Ok(()) };
        let has_tensors = |file: &PathBuf| {
            stdio::is_meant(file) || file.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("safetensors"))
        };
        if files.iter().any(has_tensors) {
            return Ok(());
        }
        let found = format!("\"{name}\" with {}", files[0].display());
        Err(Error::input("--tensor", "a .safetensors file of floats", found))
    }

    /// Returns the name of the tensor in .safetensors files of floats.
    pub(super) fn tensor(&self) -> Option<&str> {
        self.tensor.as_deref()
    }

    /// Returns the size to encode of frames of `size`, for a model that takes multiples of `factor`
    /// pixels: the middle of each frame. Floats are encoded as they are.
    ///
    /// # Errors
    /// For sizes that the model does not take, and with `--resize`.
    pub(super) fn of_frames(&self, path: &Path, size: Size, are_floats: bool, factor: u32) -> Result<Size> {
        if self.resize.is_some() {
            let expected = "pictures by themselves (ffmpeg's filter \"scale\" resizes clips)";
            return Err(Error::input("--resize", expected, format!("a clip, {}", path.display())));
        }
        if are_floats {
            return self.check_multiple(size, path, factor).map(|()| size);
        }
        let resize = Resize { exact: self.exact_size, ..Resize::default() };
        let middle = resize.fit(&path.display().to_string(), size, factor)?.size;
        if middle != size {
            note(
                path,
                &format!("encoding the middle {middle} of each frame, as {size} is no multiple of {factor} pixels"),
            );
        }
        Ok(middle)
    }

    fn picture(&self, path: &Path, file: PictureFile, taken: Taken) -> Result<Content> {
        let (name, factor, keep_alpha) = (path.display().to_string(), taken.factor, taken.has_alpha());
        let resize = Resize { to: self.resize, fit: self.fit, exact: self.exact_size };
        let fitted = resize.fit(&name, file.size(), factor)?;
        for remark in file.remarks().iter().filter(|remark| !keep_alpha || **remark != Remark::Alpha) {
            note(path, &remark.to_string());
        }
        if fitted.size != fitted.wanted {
            note(path, &format!("scaled to {}, as {} is no multiple of {factor} pixels", fitted.size, fitted.wanted));
        }
        Ok(Content::Picture { file, fitted, keep_alpha })
    }

    async fn floats(&self, path: &Path, source: &dyn ByteSource, taken: Taken) -> Result<Images> {
        let name = path.display().to_string();
        if self.resize.is_some() {
            return Err(Error::input("--resize", "pictures", format!("floats in {name}")));
        }
        let tensor = read_images(source, self.tensor.as_deref()).await?;
        check_shape(&tensor, &name, taken)?;
        let images = Images::new(tensor).map_err(|error| in_file(error, path.display()))?;
        say_range(images.range(), path);
        self.check_multiple(images.size(), path, taken.factor)?;
        Ok(images)
    }

    /// Checks the size of floats, which are encoded as they are. A network itself decides how it
    /// rounds other sizes.
    fn check_multiple(&self, size: Size, path: &Path, factor: u32) -> Result<()> {
        if size.width.is_multiple_of(factor) && size.height.is_multiple_of(factor) {
            return Ok(());
        }
        if self.exact_size {
            let expected = format!("width and height in multiples of {factor} pixels");
            return Err(Error::input(format!("size of {}", path.display()), expected, size.to_string()));
        }
        note(path, &format!("{size} is no multiple of {factor} pixels: the network rounds edges that fill no latent"));
        Ok(())
    }
}

impl ImageFile {
    /// Returns the file, count and size of the images.
    pub(super) fn source(&self) -> Source {
        let (count, size) = match &self.content {
            Content::Picture { fitted, .. } => (1, fitted.size),
            Content::Floats(images) => (images.count(), images.size()),
        };
        Source { file: self.path.clone(), count, size }
    }

    /// Reads the images as an encoder takes them.
    ///
    /// # Errors
    /// For a picture that cannot be read, or does not fit into memory.
    pub(super) fn read(self) -> Result<Images> {
        match self.content {
            Content::Picture { file, fitted, keep_alpha } => {
                let picture = fitted.apply(if keep_alpha { file.read_with_alpha()? } else { file.read()? });
                let shape = [picture.channels(), fitted.size.height, fitted.size.width].map(|axis| axis as usize);
                Images::new(HostTensor { shape: shape.to_vec(), data: picture.to_floats() })
            }
            Content::Floats(images) => Ok(images),
        }
    }
}

/// Fails for a file that is no picture and has no ending of a float file.
fn check_ending(path: &Path) -> Result<()> {
    let ending = path.extension().unwrap_or_default().to_string_lossy().to_lowercase();
    if ["npy", "safetensors"].contains(&ending.as_str()) {
        return Ok(());
    }
    Err(Error::input(
        format!("image {}", path.display()),
        "a PNG, JPEG or WebP picture, or floats in .npy or .safetensors",
        "a file whose first bytes and ending match none of these",
    ))
}

/// Fails unless `tensor` is `[n, 3, h, w]` or `[3, h, w]`, or has 4 channels for a model with
/// opacity, and is not empty.
fn check_shape(tensor: &HostTensor, name: &str, taken: Taken) -> Result<()> {
    let expected = match *tensor.shape.as_slice() {
        _ if tensor.shape.contains(&0) => "no axis of extent 0",
        [3, _, _] | [_, 3, _, _] => return Ok(()),
        [4, _, _] | [_, 4, _, _] if taken.has_alpha() => return Ok(()),
        _ if taken.has_alpha() => "a shape [n, 3, h, w] or [n, 4, h, w], or without n",
        _ => "a shape [n, 3, h, w] or [3, h, w]",
    };
    Err(Error::input(format!("image in {name}"), expected, format!("{:?}", tensor.shape)))
}

/// Prints a note if values from `least` to `most` exceed the range of pictures. They are encoded
/// all the same.
pub(super) fn say_range((least, most): (f32, f32), path: &Path) {
    if least < -1.0 || most > 1.0 {
        note(path, &format!("values range from {least} to {most}, but pictures have -1 to 1"));
    }
}
