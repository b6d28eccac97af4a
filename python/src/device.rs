//! A device and the model on it. One call runs at a time, and weights are loaded when a call needs
//! them.

use std::path::PathBuf;
use std::thread::{self, ThreadId};

use parking_lot::{Mutex, MutexGuard};
use wgvae::config::PaddingMode;
use wgvae::files::Variant;
use wgvae::{Checkpoint, Directions, Error, LoadOptions, Named, Planner, Result, Vae};

use crate::SIGNALS;
use crate::errors::Stop;
use crate::watch::Watch;

/// Where a model is, and what the caller stated of it.
#[derive(Debug)]
pub(crate) struct Source {
    /// Path of the file or folder.
    pub(crate) path: PathBuf,
    /// Family that the caller stated.
    pub(crate) family: Option<String>,
    /// Borders that the caller stated.
    pub(crate) border: Option<String>,
    /// Preferred files.
    pub(crate) variant: Variant,
    /// True to decode one frame for each frame of latents.
    pub(crate) preview_rate: bool,
}

impl Source {
    /// Opens the files and reads their headers.
    ///
    /// # Errors
    /// See [`Checkpoint::open`], [`Checkpoint::with_family`], [`Checkpoint::with_border`] and
    /// [`Checkpoint::at_preview_rate`].
    pub(crate) fn open(&self) -> Result<Checkpoint> {
        let mut checkpoint = pollster::block_on(Checkpoint::open_variant(&self.path, self.variant))?;
        if let Some(family) = &self.family {
            checkpoint = checkpoint.with_family(family)?;
        }
        if let Some(border) = &self.border {
            checkpoint = checkpoint.with_border(PaddingMode::named(border)?)?;
        }
        if self.preview_rate { checkpoint.at_preview_rate() } else { Ok(checkpoint) }
    }
}

/// A device and the model that is loaded on it.
#[derive(Debug)]
pub(crate) struct Device {
    /// The model's files. They stay open, so that weights that are loaded later are of the same.
    pub(crate) checkpoint: Checkpoint,
    /// The device itself.
    pub(crate) device: wgvae::Device,
    work: Mutex<Work>,
    /// Options of all calls so far, for images and for clips. They never shrink, so that loaded
    /// weights are not loaded again.
    asked: Mutex<[Option<LoadOptions>; 2]>,
    /// Thread that uses the device now.
    holder: Mutex<Option<ThreadId>>,
}

#[derive(Debug, Default)]
struct Work {
    loaded: Option<(LoadOptions, Vae)>,
    /// True if a panic has left it in an unknown state.
    broken: bool,
}

/// The exclusive right to use a device, until it is dropped.
#[derive(Debug)]
pub(crate) struct Turn<'a> {
    device: &'a Device,
    work: MutexGuard<'a, Work>,
}

impl Device {
    /// Creates a device on which nothing is loaded yet.
    pub(crate) fn new(checkpoint: Checkpoint, device: wgvae::Device) -> Self {
        Self { checkpoint, device, work: Mutex::default(), asked: Mutex::default(), holder: Mutex::default() }
    }

    /// Waits until no other thread uses the device.
    ///
    /// # Errors
    /// If this thread already uses it, if an earlier panic has broken it, or if a signal handler
    /// raises an exception.
    pub(crate) fn turn(&self) -> std::result::Result<Turn<'_>, Stop> {
        if *self.holder.lock() == Some(thread::current().id()) {
            return Err(Error::input("Vae", "no call from one of its own callbacks", "such a call").into());
        }
        loop {
            if let Some(work) = self.work.try_lock_for(SIGNALS) {
                if work.broken {
                    let expected = "a Vae without an internal error: open the model again";
                    return Err(Error::input("Vae", expected, "a Vae that failed earlier").into());
                }
                *self.holder.lock() = Some(thread::current().id());
                return Ok(Turn { device: self, work });
            }
            Watch::signals()?;
        }
    }

    /// Returns a planner for the model as it will be after `wanted` is loaded, too. Does not wait
    /// for other threads.
    ///
    /// # Errors
    /// If the model lacks weights for `wanted`.
    pub(crate) fn planner(&self, wanted: LoadOptions) -> Result<Planner> {
        let options = self.merged(wanted);
        check(&self.checkpoint, options)?;
        Planner::new(&self.device, &self.checkpoint, options)
    }

    /// Returns the options for `wanted` and all earlier calls together.
    fn merged(&self, wanted: LoadOptions) -> LoadOptions {
        match self.asked.lock()[usize::from(wanted.clips)] {
            None => wanted,
            Some(before) => LoadOptions {
                directions: if before.directions == wanted.directions { before.directions } else { Directions::Both },
                weights_on_host: before.weights_on_host || wanted.weights_on_host,
                ..wanted
            },
        }
    }
}

impl Turn<'_> {
    /// Returns the model with everything that `wanted` needs, and loads it first if necessary.
    ///
    /// # Errors
    /// If the model lacks weights, see [`Vae::load`].
    pub(crate) fn load(&mut self, wanted: LoadOptions) -> Result<&mut Vae> {
        let options = self.device.merged(wanted);
        let loaded = match self.work.loaded.take_if(|(loaded, _)| *loaded == options) {
            Some(loaded) => loaded,
            None => {
                let Device { checkpoint, device, asked, .. } = self.device;
                check(checkpoint, options)?;
                // Free the old model first, so that two never need memory at once.
                self.work.loaded = None;
                let vae = pollster::block_on(Vae::load(device, checkpoint, options))?;
                asked.lock()[usize::from(options.clips)] = Some(options);
                (options, vae)
            }
        };
        Ok(&mut self.work.loaded.insert(loaded).1)
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.work.broken |= thread::panicking();
        *self.device.holder.lock() = None;
    }
}

/// Checks that a model has the weights for `options`.
fn check(checkpoint: &Checkpoint, options: LoadOptions) -> Result<()> {
    if options.clips {
        if !checkpoint.config().has_time() {
            return Err(Error::input("clip", "a video model, for a clip", checkpoint.name()));
        }
        return checkpoint.check_clips(options.directions);
    }
    if options.directions.decodes() {
        checkpoint.check_decoder()?;
    }
    if options.directions.encodes() {
        checkpoint.check_encoder()?;
    }
    Ok(())
}
