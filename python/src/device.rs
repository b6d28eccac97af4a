//! A device and what is loaded on it: one call at a time, and of the weights what the calls so far
//! have asked for.

use std::path::PathBuf;
use std::thread::{self, ThreadId};

use parking_lot::{Mutex, MutexGuard};
use wgvae::{
    Checkpoint, Directions, Gpu, LoadOptions, Planner, Result, Vae, Variant, check_clips, check_decoder, check_encoder,
};

use crate::SIGNALS;
use crate::errors::{Stop, wrong};
use crate::watch::Watch;

/// Where a model is.
#[derive(Debug)]
pub(crate) struct Source {
    /// File or folder.
    pub(crate) path: PathBuf,
    /// What its files are said to be.
    pub(crate) family: Option<String>,
    /// Which of its files to prefer.
    pub(crate) variant: Variant,
}

impl Source {
    /// Opens the files and reads their headers.
    ///
    /// # Errors
    /// See [`Checkpoint::open`].
    pub(crate) fn open(&self) -> Result<Checkpoint> {
        let checkpoint = pollster::block_on(Checkpoint::open(&self.path, self.variant))?;
        match &self.family {
            None => Ok(checkpoint),
            Some(family) => checkpoint.with_family(family),
        }
    }
}

/// A device, and what is loaded there.
#[derive(Debug)]
pub(crate) struct Device {
    source: Source,
    /// The device itself.
    pub(crate) gpu: Gpu,
    work: Mutex<Work>,
    /// What calls so far have asked for, of images and of clips. Never less: what is loaded once is
    /// not loaded again.
    asked: Mutex<[Option<LoadOptions>; 2]>,
    /// Whose turn it is.
    holder: Mutex<Option<ThreadId>>,
}

#[derive(Debug, Default)]
struct Work {
    loaded: Option<(LoadOptions, Vae)>,
    /// A panic has left it in no known state.
    broken: bool,
}

/// The right to use a device, until it is dropped.
#[derive(Debug)]
pub(crate) struct Turn<'a> {
    device: &'a Device,
    work: MutexGuard<'a, Work>,
}

impl Device {
    /// Nothing is loaded yet.
    pub(crate) fn new(source: Source, gpu: Gpu) -> Self {
        Self { source, gpu, work: Mutex::default(), asked: Mutex::default(), holder: Mutex::default() }
    }

    /// Opens the model's files again.
    ///
    /// # Errors
    /// See [`Checkpoint::open`].
    pub(crate) fn open(&self) -> Result<Checkpoint> {
        self.source.open()
    }

    /// Waits until no other thread uses the device.
    ///
    /// # Errors
    /// When this thread uses it, or a panic has ended it; what handlers of signals raise.
    pub(crate) fn turn(&self) -> std::result::Result<Turn<'_>, Stop> {
        if *self.holder.lock() == Some(thread::current().id()) {
            return Err(wrong("Vae", "no call from a callback of its own", "one").into());
        }
        loop {
            if let Some(work) = self.work.try_lock_for(SIGNALS) {
                if work.broken {
                    return Err(wrong("Vae", "one that no bug has ended: make another", "one that has").into());
                }
                *self.holder.lock() = Some(thread::current().id());
                return Ok(Turn { device: self, work });
            }
            Watch::signals()?;
        }
    }

    /// Plans for a model as it will be once `wanted` is loaded, too. Waits for nobody.
    ///
    /// # Errors
    /// For what the model lacks.
    pub(crate) fn planner(&self, wanted: LoadOptions) -> Result<Planner> {
        let checkpoint = self.source.open()?;
        let options = self.merged(wanted);
        check(&checkpoint, options)?;
        Planner::new(&self.gpu, &checkpoint, options)
    }

    /// What has to be loaded for `wanted` and all that was asked for before.
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
    /// The model with all that `wanted` says, read now if it is not there.
    ///
    /// # Errors
    /// For what the model lacks, see [`Vae::load`].
    pub(crate) fn load(&mut self, wanted: LoadOptions) -> Result<&mut Vae> {
        let options = self.device.merged(wanted);
        if self.work.loaded.as_ref().is_none_or(|(loaded, _)| *loaded != options) {
            let checkpoint = self.device.source.open()?;
            check(&checkpoint, options)?;
            // Free it before: the peak is that of one, not of two.
            self.work.loaded = None;
            let vae = pollster::block_on(Vae::load(&self.device.gpu, &checkpoint, options))?;
            self.device.asked.lock()[usize::from(options.clips)] = Some(options);
            self.work.loaded = Some((options, vae));
        }
        self.work.loaded.as_mut().map(|(_, vae)| vae).ok_or(wgvae::Error::Cancelled)
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.work.broken |= thread::panicking();
        *self.device.holder.lock() = None;
    }
}

/// Fails for a model without the weights for `options`.
fn check(checkpoint: &Checkpoint, options: LoadOptions) -> Result<()> {
    if options.clips {
        if !checkpoint.config().has_time() {
            return Err(wrong("clip", "a model for video", checkpoint.name()));
        }
        return check_clips(checkpoint, options.directions);
    }
    if options.directions.decodes() {
        check_decoder(checkpoint)?;
    }
    if options.directions.encodes() {
        check_encoder(checkpoint)?;
    }
    Ok(())
}
