//! Padding of a clip at its end, up to a number of frames that latents can stand for.

use std::collections::VecDeque;
use std::path::PathBuf;

use wgvae::internals::clips::TimeFactor;
use wgvae::{Error, Result, Size};

use super::frame::{FrameSource, PlanarFrame};
use super::options::Fps;
use crate::picture::Remark;

/// Choice of the frames that are added at the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pad {
    /// The last frame, repeated, as in `ByteDance`'s `SeedVR`.
    Repeat,
    /// The frames before the last, in reverse order, as in numz's `SeedVR2` node. If there are too
    /// few, the last frame is repeated, as there.
    Mirror,
}

wgvae::named!(Pad, "pad": Repeat = "repeat", Mirror = "mirror");

/// A source that pads another to a number of frames that latents can stand for. It keeps only the
/// last few frames.
#[derive(Debug)]
pub struct Padded {
    source: Box<dyn FrameSource>,
    factor: TimeFactor,
    pad: Option<Pad>,
    /// The last frames of the source: one more than may be added.
    last: VecDeque<PlanarFrame>,
    read: u64,
    /// Frames still to be added after the source has ended.
    adding: Option<VecDeque<PlanarFrame>>,
    added: u64,
}

impl Padded {
    /// Wraps `source`. Without `pad`, a number of frames that does not fit is an error: here if the
    /// number is known, else at the end.
    ///
    /// # Errors
    /// [`Error::Input`] for a number of frames that does not fit, or for no frames.
    pub fn new(source: Box<dyn FrameSource>, factor: TimeFactor, pad: Option<Pad>) -> Result<Self> {
        let padded = Self { source, factor, pad, last: VecDeque::new(), read: 0, adding: None, added: 0 };
        padded.source.frames().map_or(Ok(()), |frames| padded.check(frames))?;
        Ok(padded)
    }

    /// Returns the number of frames added so far or, if the source knows its length, to be added. A
    /// later decode must drop this many frames at its end.
    pub fn added(&self) -> u64 {
        self.source.frames().map_or(self.added, |frames| self.factor.missing(frames))
    }

    /// Returns a remark for the user about the added frames, if there are any.
    pub fn remark(&self) -> Option<String> {
        let (added, pad) = (self.added(), self.pad?);
        let frames = self.source.frames().unwrap_or(self.read);
        let how = match pad {
            Pad::Mirror if frames > added => "the last ones backwards",
            Pad::Mirror | Pad::Repeat => "the last one again",
        };
        (added > 0)
            .then(|| format!("{frames} frames, and {added} added at the end ({how}): cut {added} off after the decode"))
    }

    fn check(&self, frames: u64) -> Result<()> {
        if frames == 0 {
            return Err(Error::input(format!("frames of {}", self.source.name()), "at least one", "none"));
        }
        let missing = self.factor.missing(frames);
        if missing == 0 || self.pad.is_some() {
            return Ok(());
        }
        Err(unfit(self.source.name(), frames, missing))
    }

    /// Returns the frames to add at the end.
    fn ending(&mut self) -> Result<VecDeque<PlanarFrame>> {
        self.check(self.read)?;
        self.added = self.factor.missing(self.read);
        let added = usize::try_from(self.added).unwrap_or(usize::MAX);
        let before_last = self.last.iter().rev().skip(1);
        if self.pad == Some(Pad::Mirror) && self.last.len() > added {
            return Ok(before_last.take(added).cloned().collect());
        }
        Ok(self.last.back().map(|last| vec![last.clone(); added]).unwrap_or_default().into())
    }

    fn keep(&mut self, frame: &PlanarFrame) {
        let Some(pad) = self.pad else { return };
        let kept = if pad == Pad::Mirror { self.factor.period() } else { 1 };
        while self.last.len() as u64 >= kept {
            self.last.pop_front();
        }
        self.last.push_back(frame.clone());
    }
}

impl FrameSource for Padded {
    fn name(&self) -> &str {
        self.source.name()
    }

    fn size(&self) -> Size {
        self.source.size()
    }

    fn frames(&self) -> Option<u64> {
        self.source.frames().map(|frames| frames.saturating_add(self.factor.missing(frames)))
    }

    fn fps(&self) -> Option<Fps> {
        self.source.fps()
    }

    fn remarks(&self) -> &[(PathBuf, Remark)] {
        self.source.remarks()
    }

    fn next(&mut self) -> Result<Option<PlanarFrame>> {
        if let Some(adding) = &mut self.adding {
            return Ok(adding.pop_front());
        }
        if let Some(frame) = self.source.next()? {
            self.read += 1;
            self.keep(&frame);
            return Ok(Some(frame));
        }
        let mut adding = self.ending()?;
        let first = adding.pop_front();
        self.adding = Some(adding);
        Ok(first)
    }
}

fn unfit(name: &str, frames: u64, missing: u64) -> Error {
    let expected =
        format!("as many as latents have, such as {} (--pad repeat or mirror adds {missing})", frames + missing);
    Error::input(format!("frames of {name}"), expected, frames.to_string())
}
