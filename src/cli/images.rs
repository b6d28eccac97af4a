//! Images to be encoded: pictures and floats, brought to a size that the model takes, with a note
//! on stderr for whatever is not taken as it is.

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use serde::Serialize;
use wgvae::internals::picture::{Fit, Fitted, PictureFile, Resize};
use wgvae::{ByteSource, FileSource, HostTensor, Images, MemorySource, Result, Size, read_images};

use super::stderr::note;
use super::{in_file, input, stdio};

/// How images get the size that is encoded.
#[derive(Debug, Args)]
pub(super) struct SizeArgs {
    /// Bring pictures to this size in pixels first, by PIL's Lanczos
    #[arg(long, value_name = "WxH", value_parser = super::parse_size)]
    resize: Option<Size>,
    /// How a picture gets a size of other proportions: cover it and be cropped in the middle, lie
    /// within it, or be stretched
    #[arg(long, value_enum, default_value_t = FitArg::Cover, requires = "resize")]
    fit: FitArg,
    /// Fail where a side is no multiple of what the model takes; otherwise pictures are scaled to
    /// the next smaller one, as diffusers does
    #[arg(long)]
    exact_size: bool,
    /// Name of the tensor in .safetensors files of floats [default: image, or else images]
    #[arg(long, value_name = "NAME")]
    tensor: Option<String>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum FitArg {
    Cover,
    Contain,
    Stretch,
}

impl From<FitArg> for Fit {
    fn from(fit: FitArg) -> Self {
        match fit {
            FitArg::Cover => Self::Cover,
            FitArg::Contain => Self::Contain,
            FitArg::Stretch => Self::Stretch,
        }
    }
}

/// A file of images of which it is known what will be encoded.
#[derive(Debug)]
pub(super) struct ImageFile {
    path: PathBuf,
    content: Content,
}

/// Which images an encode is of.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Source {
    /// Where they are.
    pub(super) file: PathBuf,
    /// Number of images.
    pub(super) count: u32,
    /// Extent in pixels of what is encoded.
    pub(super) size: Size,
}

#[derive(Debug)]
enum Content {
    /// Not read yet but for its header.
    Picture(PictureFile, Fitted),
    Floats(Images),
}

impl SizeArgs {
    /// Opens the file at `path` for a model whose images have sides that are multiples of `factor`,
    /// pixels.
    ///
    /// # Errors
    /// For what is no image, for sizes that the model does not take, and for values that are not
    /// finite.
    pub(super) async fn open(&self, path: &Path, factor: u32) -> Result<ImageFile> {
        let content = if stdio::is_meant(path) {
            let (name, bytes) = (Path::new(stdio::STDIN), stdio::read()?);
            if PictureFile::begins(&bytes) {
                self.picture(name, PictureFile::from_bytes(name, bytes)?, factor)?
            } else {
                Content::Floats(self.floats(name, &MemorySource::new(stdio::STDIN, bytes), factor).await?)
            }
        } else if PictureFile::is_picture(path)? {
            self.picture(path, PictureFile::open(path)?, factor)?
        } else {
            check_ending(path)?;
            Content::Floats(self.floats(path, &FileSource::open(path)?, factor).await?)
        };
        Ok(ImageFile { path: path.to_owned(), content })
    }

    /// Name of the tensor in .safetensors files of floats.
    pub(super) fn tensor(&self) -> Option<&str> {
        self.tensor.as_deref()
    }

    /// What is encoded of frames of `size`, for a model that takes sides that are multiples of
    /// `factor`, pixels: the middle of each. Floats are encoded as they are.
    ///
    /// # Errors
    /// For sizes that the model does not take, and where a resize was asked for.
    pub(super) fn of_frames(&self, path: &Path, size: Size, are_floats: bool, factor: u32) -> Result<Size> {
        if self.resize.is_some() {
            let expected = "pictures by themselves (ffmpeg's filter \"scale\" resizes clips)";
            return Err(input("--resize", expected, format!("a clip, {}", path.display())));
        }
        if are_floats {
            return self.check_multiple(size, path, factor).map(|()| size);
        }
        let resize = Resize { exact: self.exact_size, ..Resize::default() };
        let middle = resize.fit(&path.display().to_string(), size, factor)?.size;
        if middle != size {
            note(path, &format!("the middle {middle} of each frame, as {size} is no multiple of {factor} pixels"));
        }
        Ok(middle)
    }

    fn picture(&self, path: &Path, picture: PictureFile, factor: u32) -> Result<Content> {
        let name = path.display().to_string();
        let resize = Resize { to: self.resize, fit: self.fit.into(), exact: self.exact_size };
        let fitted = resize.fit(&name, picture.size(), factor)?;
        for remark in picture.remarks() {
            note(path, &remark.to_string());
        }
        if fitted.size != fitted.wanted {
            note(path, &format!("scaled to {}, as {} is no multiple of {factor} pixels", fitted.size, fitted.wanted));
        }
        Ok(Content::Picture(picture, fitted))
    }

    async fn floats(&self, path: &Path, source: &dyn ByteSource, factor: u32) -> Result<Images> {
        let name = path.display().to_string();
        if self.resize.is_some() {
            return Err(input("--resize", "pictures", format!("floats in {name}")));
        }
        let tensor = read_images(source, self.tensor.as_deref()).await?;
        check_shape(&tensor, &name)?;
        say_range(&tensor, path);
        let images = Images::new(tensor).map_err(|error| in_file(error, path.display()))?;
        self.check_multiple(images.size(), path, factor)?;
        Ok(images)
    }

    /// Floats are encoded as they are. What a network makes of other sizes it knows itself.
    fn check_multiple(&self, size: Size, path: &Path, factor: u32) -> Result<()> {
        if size.width.is_multiple_of(factor) && size.height.is_multiple_of(factor) {
            return Ok(());
        }
        if self.exact_size {
            let expected = format!("multiples of {factor} pixels each way, as the model has");
            return Err(input(format!("size of {}", path.display()), expected, size.to_string()));
        }
        note(
            path,
            &format!("{size} is no multiple of {factor} pixels: what fills no latent is rounded as the network does"),
        );
        Ok(())
    }
}

impl ImageFile {
    /// What it is.
    pub(super) fn source(&self) -> Source {
        let (count, size) = match &self.content {
            Content::Picture(_, fitted) => (1, fitted.size),
            Content::Floats(images) => (images.count(), images.size()),
        };
        Source { file: self.path.clone(), count, size }
    }

    /// Its images as an encoder takes them.
    ///
    /// # Errors
    /// For a picture that cannot be read, or does not fit into memory.
    pub(super) fn read(self) -> Result<Images> {
        match self.content {
            Content::Picture(picture, fitted) => {
                let data = fitted.apply(picture.read()?).to_floats();
                Images::new(HostTensor {
                    shape: vec![3, fitted.size.height as usize, fitted.size.width as usize],
                    data,
                })
            }
            Content::Floats(images) => Ok(images),
        }
    }
}

/// Fails for a file that is no picture and has no ending of floats.
fn check_ending(path: &Path) -> Result<()> {
    let ending = path.extension().unwrap_or_default().to_string_lossy().to_lowercase();
    if ["npy", "safetensors"].contains(&ending.as_str()) {
        return Ok(());
    }
    Err(input(
        format!("image {}", path.display()),
        "a PNG, JPEG or WebP picture, or floats in .npy or .safetensors",
        "none of these by its first bytes and its ending",
    ))
}

/// Fails unless `tensor` is `[n, 3, h, w]` or `[3, h, w]` with something in it.
fn check_shape(tensor: &HostTensor, name: &str) -> Result<()> {
    let found = || format!("{:?}", tensor.shape);
    match *tensor.shape.as_slice() {
        _ if tensor.shape.contains(&0) => Err(input(format!("image in {name}"), "no axis of extent 0", found())),
        [3, _, _] | [_, 3, _, _] => Ok(()),
        _ => Err(input(format!("image in {name}"), "a shape [n, 3, h, w] or [3, h, w]", found())),
    }
}

/// What is beyond the range of pictures is encoded all the same.
fn say_range(tensor: &HostTensor, path: &Path) {
    let (least, most) =
        tensor.data.iter().fold((f32::MAX, f32::MIN), |(least, most), &value| (least.min(value), most.max(value)));
    if (least < -1.0 || most > 1.0) && least.is_finite() && most.is_finite() {
        note(path, &format!("values of {least} to {most}, where pictures have -1 to 1"));
    }
}
